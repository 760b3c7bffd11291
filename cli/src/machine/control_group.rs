//! Memory limits of control groups, versions 1 and 2. The limit of a batch job or container often sits some levels above the
//! process, so every group from its own up to the root counts.

use std::fs::read_to_string;
use std::path::Path;

use super::MemoryLimit;

/// Version 1 stands for no limit with a number near 2^63.
const UNLIMITED_FROM: u64 = 1 << 60;

/// The files of a version of control groups.
struct Files {
    /// Where systems show its groups that limit memory.
    root: &'static str,
    limits: &'static [&'static str],
    usage: &'static str,
    /// In `memory.stat`: pages of files that the kernel can drop.
    droppable: &'static str,
}

const V1: Files = Files {
    root: "sys/fs/cgroup/memory",
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    droppable: "total_inactive_file",
};
const V2: Files = Files {
    root: "sys/fs/cgroup",
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    droppable: "inactive_file",
};

/// The limits on this process; none where the system does not tell.
pub(super) fn memory_limits() -> Vec<MemoryLimit> {
    limits(Path::new("/"), &read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// The limits of the groups that a file `/proc/self/cgroup` names, and of all groups above them.
fn limits(system: &Path, groups: &str) -> Vec<MemoryLimit> {
    let mut limits = Vec::new();
    for group in groups.lines() {
        let mut fields = group.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let files = match controllers {
            "" => &V2,
            _ if controllers.split(',').any(|controller| controller == "memory") => &V1,
            _ => continue,
        };
        // A container sees a part of the tree, and the path may lie outside of it: what is not there has no limit.
        let path = Path::new(path.trim_start_matches('/'));
        let is_inside = path.components().all(|part| part.as_os_str() != "..");
        let folders = path.ancestors().filter(|folder| is_inside || folder.as_os_str().is_empty());
        let root = system.join(files.root);
        limits.extend(folders.filter_map(|folder| limit(&root.join(folder), files)));
    }
    limits
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

    use super::*;

    /// The limits found in a made-up tree: what /proc/self/cgroup says, and the files below a root.
    fn found(groups: &str, root: &str, files: &[(&str, &str)]) -> Vec<(String, u64, u64)> {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().join(root);
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let relative = |limit: MemoryLimit| {
            let source = limit.source.replace(&format!("control group {}/", root.display()), "");
            (source, limit.max, limit.free)
        };
        limits(tree.path(), groups).into_iter().map(relative).collect()
    }

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
        assert_eq!(found("0::/slurm/job_3/step_0\n", V2.root, &files), [job, all]);
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
            found(group, V1.root, &files),
            [("job/memory.limit_in_bytes".to_owned(), 314_572_800, 304_572_800)]
        );
    }

    #[test]
    fn a_container_sees_a_part_of_the_tree() {
        let files = [("memory.max", "500"), ("inner/memory.max", "400")];
        let outer = ("memory.max".to_owned(), 500, 500);
        let inner = ("inner/memory.max".to_owned(), 400, 400);
        assert_eq!(found("0::/inner\n", V2.root, &files), [inner, outer.clone()]);
        // Docker with version 1 tells the path outside of the container.
        for outside in ["0::/", "0::/../other\n", "0::/docker/0123456789ab\n"] {
            assert_eq!(found(outside, V2.root, &files), std::slice::from_ref(&outer));
        }
    }
}
