//! `./baton VERB` ends up here for the verbs that test, measure and check.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match xtask_lab::cli::run() {
        Ok(code) => code,
        Err(error) => {
            xtask_lab::ui::complain(&error);
            ExitCode::FAILURE
        }
    }
}
