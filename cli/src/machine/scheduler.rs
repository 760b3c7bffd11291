//! What the batch system of a cluster says in its variables: Slurm, PBS Pro and Grid Engine.

use std::env::var;
use std::num::NonZeroUsize;

use super::ThreadLimit;

/// Variables with the processors of a task, in the order in which they are believed, and a variable that shows whose they are.
const THREADS: [(&str, &str); 4] = [
    ("SLURM_CPUS_PER_TASK", "SLURM_JOB_ID"),
    ("SLURM_CPUS_ON_NODE", "SLURM_JOB_ID"),
    ("NCPUS", "PBS_JOBID"),
    ("NSLOTS", "SGE_TASK_ID"),
];

/// The processors that the batch system has given to this task.
pub(super) fn threads() -> Option<ThreadLimit> {
    let limit = |(variable, system): (&'static str, &str)| {
        var(system).ok()?;
        Some(ThreadLimit { source: variable, max: var(variable).ok()?.parse().ok()? })
    };
    THREADS.into_iter().find_map(limit)
}

/// The memory that Slurm has given to this job on this node, in bytes, and the variable that says so.
pub(super) fn memory() -> Option<(&'static str, u64)> {
    let number = |variable| var(variable).ok()?.parse::<u64>().ok();
    let mebibytes = |number: u64| number.checked_mul(1 << 20);
    let of_node = || Some(("SLURM_MEM_PER_NODE", number("SLURM_MEM_PER_NODE").filter(|memory| *memory > 0)?));
    let of_processors = || {
        let memory = number("SLURM_MEM_PER_CPU")?.checked_mul(number("SLURM_CPUS_ON_NODE")?)?;
        Some(("SLURM_MEM_PER_CPU", memory))
    };
    let (variable, memory) = of_node().or_else(of_processors)?;
    Some((variable, mebibytes(memory)?))
}

/// Tasks of this Slurm step on this node: `srun` starts them together.
pub(super) fn tasks_on_node() -> Option<NonZeroUsize> {
    let node = var("SLURM_NODEID").ok()?.parse().ok()?;
    nth_task_count(&var("SLURM_STEP_TASKS_PER_NODE").ok()?, node)
}

/// The tasks of one node in a list such as `2(x3),1`: two on each of three nodes, one on the fourth.
fn nth_task_count(list: &str, node: usize) -> Option<NonZeroUsize> {
    let mut before = 0_usize;
    for item in list.split(',') {
        let (tasks, nodes) = match item.split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (item, 1),
        };
        before = before.checked_add(nodes)?;
        if node < before {
            return tasks.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_tasks_are_read() {
        let counts = |list, node| nth_task_count(list, node).map(NonZeroUsize::get);
        assert_eq!([0, 2, 3, 4].map(|node| counts("2(x3),1", node)), [Some(2), Some(2), Some(1), None]);
        assert_eq!(
            [counts("4", 0), counts("", 0), counts("2(x", 0), counts("0", 0)],
            [Some(4), None, None, None]
        );
    }
}
