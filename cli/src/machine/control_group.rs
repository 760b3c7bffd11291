//! Memory limits of control groups, versions 1 and 2. The limit of a batch job or container often sits some levels above the
//! process, so every group from its own up to the root counts.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use procfs::ProcessCGroups;
use procfs::process::{MountInfo, Process};

use super::MemoryLimit;

/// Version 1 stands for no limit with a number near 2^63.
const UNLIMITED_FROM: u64 = 1 << 60;

/// The files of a version of control groups.
struct Files {
    limits: &'static [&'static str],
    usage: &'static str,
    /// In `memory.stat`: pages of files that the kernel can drop.
    droppable: &'static str,
}

const V1: Files = Files {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
};
const V2: Files =
    Files { limits: &["memory.max", "memory.high"], usage: "memory.current", droppable: "inactive_file" };

/// The limits on this process; none where the system does not tell.
pub(super) fn memory_limits() -> Vec<MemoryLimit> {
    let read = || {
        let process = Process::myself().ok()?;
        Some(limits(&process.cgroups().ok()?, &process.mountinfo().ok()?.0))
    };
    read().unwrap_or_default()
}

fn limits(groups: &ProcessCGroups, mounts: &[MountInfo]) -> Vec<MemoryLimit> {
    let mut limits = Vec::new();
    for group in groups {
        let files = if group.controllers.iter().any(|controller| controller == "memory") {
            &V1
        } else if group.hierarchy == 0 {
            &V2
        } else {
            continue;
        };
        let is_of_group = |mount: &&MountInfo| match mount.fs_type.as_str() {
            "cgroup" => group.hierarchy != 0 && mount.super_options.contains_key("memory"),
            "cgroup2" => group.hierarchy == 0,
            _ => false,
        };
        if let Some(mount) = mounts.iter().find(is_of_group) {
            limits.extend(folders(mount, &group.pathname).filter_map(|folder| limit(&folder, files)));
        }
    }
    limits
}

/// The folders of a group and of all groups above it, as far as they can be seen from here.
fn folders(mount: &MountInfo, path: &str) -> impl Iterator<Item = PathBuf> {
    // In a container the mount shows a part of the tree, and the path may lie outside of it.
    let inside = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new("")).to_owned();
    let inside =
        if inside.components().any(|part| part.as_os_str() == "..") { PathBuf::new() } else { inside };
    let top = mount.mount_point.clone();
    let all: Vec<_> = inside.ancestors().map(|group| top.join(group)).collect();
    all.into_iter()
}

/// What one group allows, if it limits anything.
fn limit(folder: &Path, files: &Files) -> Option<MemoryLimit> {
    let number = |file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let limit = |file: &&'static str| Some((number(file).filter(|limit| *limit < UNLIMITED_FROM)?, *file));
    let (max, file) = files.limits.iter().filter_map(limit).min()?;
    let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let droppable = stat.lines().find_map(|line| line.strip_prefix(files.droppable)?.trim().parse().ok());
    let used = number(files.usage).unwrap_or(0).saturating_sub(droppable.unwrap_or(0));
    let source = format!("control group {}", folder.join(file).display());
    Some(MemoryLimit { source, max, free: max.saturating_sub(used) })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use procfs::FromRead;

    use super::*;

    /// The limits found in a made-up tree: the line of /proc/self/cgroup, what is mounted, and the files.
    fn found(group: &str, mount: &str, files: &[(&str, &str)]) -> Vec<(String, u64, u64)> {
        let tree = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let mount = mount.replace("TREE", tree.path().to_str().unwrap());
        let mounts = [MountInfo::from_line(&mount).unwrap()];
        let groups = ProcessCGroups::from_read(group.as_bytes()).unwrap();
        let relative = |limit: MemoryLimit| {
            let source = limit.source.replace(&format!("control group {}/", tree.path().display()), "");
            (source, limit.max, limit.free)
        };
        limits(&groups, &mounts).into_iter().map(relative).collect()
    }

    const CGROUP1: &str = "32 24 0:28 / TREE rw - cgroup cgroup rw,memory";
    const CGROUP2: &str = "32 24 0:28 / TREE rw - cgroup2 cgroup2 rw";

    #[test]
    fn every_group_above_counts() {
        let files = [
            ("memory.max", "max"),
            ("slurm/memory.max", "1000000\n"),
            ("slurm/memory.current", "400000\n"),
            ("slurm/memory.stat", "anon 1\ninactive_file 100000\n"),
            ("slurm/job_3/memory.max", "300000\n"),
            ("slurm/job_3/memory.high", "200000\n"),
            ("slurm/job_3/memory.current", "50000\n"),
            ("slurm/job_3/step_0/memory.max", "max\n"),
        ];
        let job = ("slurm/job_3/memory.high".to_owned(), 200_000, 150_000);
        let all = ("slurm/memory.max".to_owned(), 1_000_000, 700_000);
        assert_eq!(found("0::/slurm/job_3/step_0\n", CGROUP2, &files), [job, all]);
    }

    #[test]
    fn version_1_is_read_too() {
        let files = [
            ("memory.limit_in_bytes", "9223372036854771712"),
            ("job/memory.limit_in_bytes", "314572800\n"),
            ("job/memory.usage_in_bytes", "14572800\n"),
            ("job/memory.stat", "inactive_file 7\ntotal_inactive_file 4572800\n"),
        ];
        let group = "5:cpu:/job\n4:memory:/job/task\n0::/\n";
        assert_eq!(
            found(group, CGROUP1, &files),
            [("job/memory.limit_in_bytes".to_owned(), 314_572_800, 304_572_800)]
        );
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree() {
        let files = [("memory.max", "500"), ("inner/memory.max", "400")];
        let mount = "32 24 0:28 /pod/box TREE rw - cgroup2 cgroup2 rw";
        let outer = ("memory.max".to_owned(), 500, 500);
        let inner = ("inner/memory.max".to_owned(), 400, 400);
        assert_eq!(found("0::/pod/box/inner\n", mount, &files), [inner, outer.clone()]);
        assert_eq!(found("0::/\n", mount, &files), std::slice::from_ref(&outer));
        assert_eq!(found("0::/../other\n", CGROUP2, &files), [outer]);
    }
}
