//! `/proc/PID/mounts` and `mountinfo`: what a process sees mounted.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use linux_raw_sys::general as linux;

use super::super::mount_space::MountSpace;
use super::super::mounts::Mount;
use super::super::{device, path};
use super::{Node, Subject, What};
use crate::call::Cx;
use crate::errno::Errno;
use crate::process::namespace;

/// What a line may cost, but for names that the program has chosen.
const LINE_BYTES: usize = 256;
/// What a byte of these becomes at most.
const ESCAPED: usize = 4;

/// Adds a line for each mount that the process can reach.
fn lines(
    cx: &Cx,
    subject: &Subject,
    mut line: impl FnMut(&mut Vec<u8>, &Rc<Mount>, &[u8]),
) -> Result<Vec<u8>, Errno> {
    let process = &subject.process;
    if process.ended.get().is_some() {
        return Err(Errno::EINVAL);
    }
    let root = process.place.borrow().root();
    let mounts = namespace::mounts(cx.unix, process).mounts();
    let mut text = Vec::new();
    for mount in mounts {
        // Who has changed its root sees the mount in which that is there.
        let spot = if Rc::ptr_eq(&mount, &root.mount) { root.clone() } else { mount.root_spot() };
        match path::below_root(&spot, &root) {
            Ok(path) if path.first() == Some(&b'/') => {
                let path = escaped(&path);
                let names = mount.source.len() + path::PATH_MAX;
                let most = LINE_BYTES + path.len() + ESCAPED * names;
                cx.check_heap(text.len() + most)?;
                text.try_reserve(most).map_err(|_| Errno::ENOMEM)?;
                line(&mut text, &mount, &path);
            }
            _ => {}
        }
    }
    Ok(text)
}

/// The namespace whose mounts an inode tells; none for other inodes, or when the process has ended.
pub(in crate::fs) fn of(cx: &Cx, node: &Node) -> Option<Rc<MountSpace>> {
    let What::Mounts(pid, tid, _) = node.what else { return None };
    Some(namespace::mounts(cx.unix, &super::subject(cx, node, pid, tid).ok()?.process))
}

/// Whether an inode tells of mounts, so that one can wait for their changes.
pub(in crate::fs) fn is_list(node: &Node) -> bool {
    matches!(node.what, What::Mounts(..))
}

/// White space and backslashes as octal numbers.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for byte in bytes {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => {
                text.extend([b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            }
            _ => text.push(*byte),
        }
    }
    text
}

/// What may be done in a mount.
fn options(mount: &Mount) -> String {
    let mut text = String::from(if mount.has(linux::MS_RDONLY) { "ro" } else { "rw" });
    let named = [
        (linux::MS_NOSUID, ",nosuid"),
        (linux::MS_NODEV, ",nodev"),
        (linux::MS_NOEXEC, ",noexec"),
        (linux::MS_NOATIME, ",noatime"),
        (linux::MS_NODIRATIME, ",nodiratime"),
        (linux::MS_RELATIME, ",relatime"),
    ];
    for (flag, name) in named {
        if mount.has(flag) {
            text += name;
        }
    }
    text
}

/// Whether its file system is read-only.
fn of_file_system(mount: &Mount) -> &'static str {
    if mount.root().fs.read_only.get() { "ro" } else { "rw" }
}

fn kind(mount: &Mount) -> &'static str {
    mount.root().fs.kind.name()
}

/// `/proc/PID/mounts`.
pub(super) fn mounts(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    lines(cx, subject, |text, mount, path| {
        text.extend_from_slice(&escaped(&mount.source));
        text.push(b' ');
        text.extend_from_slice(path);
        let mut options = options(mount);
        if of_file_system(mount) == "ro" {
            options.replace_range(..2, "ro");
        }
        text.extend_from_slice(format!(" {} {options} 0 0\n", kind(mount)).as_bytes());
    })
}

/// `/proc/PID/mountinfo`.
pub(super) fn mountinfo(cx: &Cx, subject: &Subject) -> Result<Vec<u8>, Errno> {
    lines(cx, subject, |text, mount, path| {
        let above = mount.point().map_or(mount.id, |point| point.spot.mount.id);
        let number = mount.root().fs.device;
        let (major, minor) = (device::major(number), device::minor(number));
        text.extend_from_slice(format!("{} {above} {major}:{minor} ", mount.id).as_bytes());
        text.extend_from_slice(&escaped(&shown(mount)));
        text.push(b' ');
        text.extend_from_slice(path);
        text.extend_from_slice(format!(" {}{}", options(mount), sharing(mount)).as_bytes());
        text.extend_from_slice(format!(" - {} ", kind(mount)).as_bytes());
        text.extend_from_slice(&escaped(&mount.source));
        text.extend_from_slice(format!(" {}\n", of_file_system(mount)).as_bytes());
    })
}

/// What of its file system a mount shows: the path of its root there.
fn shown(mount: &Rc<Mount>) -> Vec<u8> {
    if let super::super::inode::Kind::Namespace(one) = &mount.root().kind {
        return one.text();
    }
    // As if the whole were mounted, with its root as the root.
    match mount.root().is_directory() {
        true => path::in_tree(mount.root(), mount.tree_root()),
        false => bound_file(mount).unwrap_or_default(),
    }
}

/// The path of a file that was bound.
fn bound_file(mount: &Mount) -> Option<Vec<u8>> {
    let (parent, name) = mount.root().moved().or_else(|| mount.origin())?;
    let mut path = path::in_tree(&parent, mount.tree_root());
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(&name);
    Some(path)
}

/// Who hears of it.
fn sharing(mount: &Mount) -> String {
    let sharing = mount.sharing.get();
    let mut text = String::new();
    if sharing.peers != 0 {
        text += &format!(" shared:{}", sharing.peers);
    }
    if sharing.master != 0 {
        text += &format!(" master:{}", sharing.master);
    }
    if sharing.unbindable {
        text += " unbindable";
    }
    text
}
