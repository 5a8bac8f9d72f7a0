//! `./baton VERB` ends up here.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match xtask::cli::run() {
        Ok(code) => code,
        Err(error) => {
            xtask::ui::complain(&error);
            ExitCode::FAILURE
        }
    }
}
