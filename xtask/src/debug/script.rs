//! The script for gdb: kernel and servers at once, the tasks by name.

use std::fmt::Write as _;
use std::path::Path;

use proto::layout::{FIRST_TASK_THREAD, THREADS};

use crate::compose::Bootable;

/// The script for `bootable`; `commands` is the file with Baton's own commands, `remote`
/// where the machine listens.
pub(super) fn text(bootable: &Bootable, commands: &Path, remote: &str) -> String {
    let mut text =
        String::from("set pagination off\nset confirm off\nset architecture i386:x86-64\n");
    let _ = writeln!(text, "file {}", bootable.kernel.display());
    for server in &bootable.servers {
        let _ = writeln!(text, "add-symbol-file {}", server.display());
    }
    let _ = writeln!(text, "target remote {remote}");
    let _ = writeln!(text, "source {}", commands.display());
    let tasks: Vec<String> = bootable
        .tasks
        .iter()
        .map(|(name, file)| format!("({name:?}, {:?})", file.display().to_string()))
        .collect();
    // The root task numbers them in this order.
    let _ = writeln!(text, "python system({FIRST_TASK_THREAD}, {THREADS}, [{}])", tasks.join(", "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_names_kernel_servers_and_tasks() {
        let bootable = Bootable {
            kernel: "t/kernel".into(),
            image: "t/image".into(),
            servers: vec!["t/root".into()],
            tasks: vec![("pager".into(), "t/pager".into()), ("shell".into(), "t/monitor".into())],
            ..Bootable::default()
        };
        let text = text(&bootable, Path::new("x/baton.py"), "localhost:1234");
        assert!(text.contains("\nfile t/kernel\n"));
        assert!(text.contains("\nadd-symbol-file t/root\n"));
        assert!(text.contains("\ntarget remote localhost:1234\nsource x/baton.py\n"));
        let tasks = r#"[("pager", "t/pager"), ("shell", "t/monitor")]"#;
        assert!(text.ends_with(&format!("\npython system(144, 16, {tasks})\n")), "{text}");
    }
}
