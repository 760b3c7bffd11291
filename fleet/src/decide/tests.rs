use super::*;
use crate::state::AllocationState::{
    Cancelled, Completed, Failed, Held, Leaving, Lost, Queued, Refused, Running, Suspended, Unknown,
};

const LIMITS: FleetLimits = FleetLimits { workers_max: 10, backlog: 2, threads: Some(4), interval: 5 };

impl Decision {
    /// Who is ended, and how many are submitted.
    fn acts(self) -> (Vec<AllocationId>, u32) {
        (self.end, self.submit)
    }
}

fn demand(open: u64, done: u64) -> Demand {
    Demand { open, done, workers: 0, threads: 0 }
}

fn id(number: usize) -> AllocationId {
    number.to_string()
}

fn queue(states: &[AllocationState]) -> Queue {
    let entry = |(number, state): (usize, &AllocationState)| {
        (id(number), Allocation { state: *state, ..Allocation::default() })
    };
    states.iter().enumerate().map(entry).collect()
}

/// Looks at allocations 0, 1 and so on in these states.
fn look(
    now: UnixSeconds,
    state: &mut FleetState,
    states: &[AllocationState],
    demand: Option<Demand>,
) -> Decision {
    decide(now, now, state, &LIMITS, Some(&queue(states)), demand)
}

#[test]
fn a_fleet_is_as_large_as_the_demand_the_backlog_and_its_limit_allow() {
    let submits = |states: &[AllocationState], open: u64, threads: u64| {
        let mut state = FleetState::default();
        let demand = Some(Demand { open, done: 0, workers: 1, threads });
        look(0, &mut state, states, demand).submit
    };
    assert_eq!(submits(&[], 0, 0), 0);
    assert_eq!(submits(&[], 1, 0), 1, "one job");
    assert_eq!(submits(&[], 100, 0), 2, "the backlog");
    assert_eq!(submits(&[Queued], 100, 0), 1);
    assert_eq!(submits(&[Running; 9], 100, 36), 1, "the limit");
    assert_eq!(submits(&[Running], 8, 4), 1, "the demand");
    assert_eq!(submits(&[Running], 8, 8), 0, "somebody else's 4 threads count the rest");
    assert_eq!(submits(&[Unknown; 2], 100, 0), 0, "they may be queued");

    let mut state = FleetState::default();
    look(0, &mut state, &[Running; 10], Some(demand(100, 0)));
    let gone = look(5, &mut state, &[Leaving; 10], Some(demand(100, 1))).acts();
    assert_eq!(gone, (Vec::new(), 2), "their place is free");
}

#[test]
fn failures_are_waited_for_longer_and_longer_whatever_is_done_elsewhere() {
    let mut state = FleetState::default();
    let mut pauses = |now, ending, open: Option<Demand>| {
        look(now, &mut state, &[Running], Some(demand(100, now)));
        look(now + 1, &mut state, &[ending], open);
        state.in_vain.not_before.saturating_sub(now + 1)
    };
    let news = |now| Some(demand(100, now));
    assert_eq!(pauses(0, Failed, None), 0, "the coordinator is away");
    assert_eq!(
        [pauses(10, Failed, news(11)), pauses(20, Failed, news(21)), pauses(30, Failed, news(31))],
        [0, 60, 900]
    );
    for ending in [Cancelled, Refused, Lost] {
        pauses(1_000, ending, news(1_001));
        assert_eq!(
            pauses(2_000, Failed, news(2_001)),
            1_800 + 1_800 * u64::from(ending != Cancelled),
            "{ending:?}"
        );
    }
    pauses(9_000, Completed, news(9_001));
    assert_eq!(pauses(9_100, Failed, news(9_101)), 0, "not in a row");
}

#[test]
fn a_node_that_is_refused_at_once_is_not_asked_for_again_and_again() {
    let mut state = FleetState::default();
    let mut pause = |began, ended| {
        look(began, &mut state, &[Running], Some(demand(100, began)));
        look(ended, &mut state, &[Refused], Some(demand(100, ended)));
        state.in_vain.not_before.saturating_sub(ended)
    };
    assert_eq!([pause(10, 11), pause(20, 21), pause(100, 101)], [0, 60, 900], "though others count");
    assert_eq!(pause(1_100, 1_200), 0, "a worker that has counted, as after an upgrade");
    assert_eq!(pause(10_000, 10_001), 0, "long after the last");
}

#[test]
fn allocations_that_come_and_go_for_nothing_are_submitted_more_and_more_seldom() {
    let mut state = FleetState::default();
    let mut submits = Vec::new();
    let mut states = Vec::new();
    for now in 0..20_000 {
        let decision = look(now, &mut state, &states, Some(demand(1, 0)));
        states.fill(Completed);
        if decision.submit == 1 {
            submits.push(now);
            submitted(now, &mut state, 1, Ok(vec![id(states.len())]));
            states.push(Running);
        }
    }
    let pauses: Vec<_> = submits.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses, [2, 62, 902, 1_802, 3_602, 3_602, 3_602, 3_602]);
    look(20_000, &mut state, &states, Some(demand(1, 1)));
    assert_eq!(state.in_vain, Retry::default(), "a job was done");
}

#[test]
fn what_the_batch_system_can_t_start_is_replaced() {
    let mut state = FleetState::default();
    look(0, &mut state, &[Running, Queued], None);
    let replaced = look(5, &mut state, &[Running, Held], Some(demand(100, 1))).acts();
    assert_eq!(replaced, (vec![id(1)], 2), "it takes no place");
    submitted(5, &mut state, 2, Ok(vec![id(2), id(3)]));
    let again = look(10, &mut state, &[Running, Held, Held, Held], Some(demand(100, 1))).acts();
    assert_eq!(again, (vec![id(2), id(3)], 2));
    submitted(10, &mut state, 2, Ok(vec![id(4), id(5)]));
    let states = [Running, Held, Held, Held, Held, Held];
    let later = look(15, &mut state, &states, Some(demand(100, 1))).acts();
    assert_eq!(later, (vec![id(4), id(5)], 0), "for nothing twice: not at once");
    let mut stopped = state.clone();
    stopped.stop();
    let ends = look(100, &mut stopped, &states, None).acts();
    assert_eq!(ends, ((0..6).map(id).collect(), 0));
    // Of an earlier life.
    let mut fresh = FleetState::default();
    assert_eq!(look(0, &mut fresh, &[Held], None).acts(), (vec![id(0)], 0));
}

#[test]
fn refused_submits_are_tried_again_later() {
    let mut state = FleetState::default();
    let mut submits = Vec::new();
    for now in 0..10_000 {
        if look(now, &mut state, &[], Some(demand(1, 0))).submit > 0 {
            submits.push(now);
            submitted(now, &mut state, 1, Err(CommandError::Failed("no such partition".to_owned())));
        }
    }
    assert_eq!(submits, [0, 1, 61, 961, 2_761, 6_361, 9_961]);
    assert_eq!(state.refused.why, "the submit was refused: no such partition");
}

#[test]
fn without_work_what_waits_is_withdrawn_and_what_runs_goes_on() {
    let mut state = FleetState::default();
    let states = [Running, Queued];
    assert_eq!(look(0, &mut state, &states, Some(demand(1, 9))).acts(), (Vec::new(), 0));
    assert_eq!(look(14, &mut state, &states, None).acts(), (Vec::new(), 0), "nobody can tell");
    assert!(is_due(15, &state, &LIMITS, Some(demand(0, 10))));
    assert_eq!(look(15, &mut state, &states, Some(demand(0, 10))).acts(), (vec![id(1)], 0));
    assert_eq!(look(16, &mut state, &states, Some(demand(0, 10))).acts(), (Vec::new(), 0), "it was told");
    assert_eq!(look(45, &mut state, &states, Some(demand(0, 10))).acts(), (vec![id(1)], 0));
}

#[test]
fn a_stop_ends_all_and_waits_for_what_may_be_queued_again() {
    let mut state = FleetState::default();
    look(0, &mut state, &[Running, Suspended, Queued], None);
    state.stop();
    let step =
        |now, state: &mut FleetState, states: &[AllocationState]| look(now, state, states, None).acts();
    let all = (vec![id(0), id(1), id(2)], 0);
    assert_eq!(step(10, &mut state, &[Running, Suspended, Queued]), all);
    assert_eq!(step(20, &mut state, &[Running, Leaving, Cancelled]), (Vec::new(), 0));
    assert_eq!(step(40, &mut state, &[Running, Leaving, Cancelled]), (vec![id(0)], 0));
    step(45, &mut state, &[Completed, Leaving, Cancelled]);
    assert!(!state.has_stopped, "it may be queued again");
    step(50, &mut state, &[Completed, Cancelled, Cancelled]);
    assert!(state.has_stopped);
}

#[test]
fn a_stop_waits_for_a_submit_without_an_answer() {
    let open_submit = Some(SETTLE_S);
    let mut state = FleetState { open_submit, ..FleetState::default() };
    state.stop();
    look(5, &mut state, &[], None);
    assert!(!state.has_stopped, "it may still arrive");
    look(SETTLE_S, &mut state, &[], None);
    assert!(state.has_stopped);
}

#[test]
fn a_submit_limit_is_learned_by_halves_and_is_no_failure() {
    // A batch system that takes three.
    let (mut state, mut states, mut calls) = (FleetState::default(), Vec::new(), Vec::new());
    let limits = FleetLimits { backlog: 100, ..LIMITS };
    let mut step = |now, state: &mut FleetState, states: &mut Vec<AllocationState>, most: usize| {
        let open = Some(demand(100, now));
        let wanted = decide(now, now, state, &limits, Some(&queue(states)), open).submit;
        let mut next = Some(wanted).filter(|count| *count > 0);
        while let Some(count) = next {
            calls.push((now, count));
            let alive = states.iter().filter(|state| state.is_alive()).count();
            let answer = if alive + count as usize <= most {
                let ids = (states.len()..states.len() + count as usize).map(id).collect();
                states.extend(vec![Running; count as usize]);
                Ok(ids)
            } else {
                Err(CommandError::Failed("AssocMaxSubmitJobLimit".to_owned()))
            };
            next = submitted(now, state, count, answer).1;
        }
        std::mem::take(&mut calls)
    };
    assert_eq!(step(0, &mut state, &mut states, 3), [(0, 10), (0, 5), (0, 2)]);
    assert_eq!(step(5, &mut state, &mut states, 3), [(5, 2), (5, 1)], "four were too many");
    assert_eq!(step(10, &mut state, &mut states, 3), []);
    states[0] = Completed;
    assert_eq!(step(20, &mut state, &mut states, 3), [(20, 1)], "one has ended");
    assert_eq!(step(124, &mut state, &mut states, 3), []);
    assert_eq!(step(125, &mut state, &mut states, 3), [(125, 1)], "perhaps it has changed");
    assert_eq!(state.refused, Retry::default());
    assert_eq!(step(245, &mut state, &mut states, 100), [(245, 1)]);
    assert_eq!(state.cap, None, "it has");
    assert_eq!(step(250, &mut state, &mut states, 100), [(250, 6)]);
}

#[test]
fn the_backlog_grows_with_what_has_just_begun() {
    let limits = FleetLimits { workers_max: 1_000, ..LIMITS };
    let (mut state, mut states, mut sizes) = (FleetState::default(), Vec::new(), Vec::new());
    let mut step = |now, becomes| {
        let decision = decide(now, now, &mut state, &limits, Some(&queue(&states)), Some(demand(9_999, now)));
        let count = decision.submit;
        if count > 0 {
            sizes.push(count);
            let ids = (states.len()..).map(id).take(count as usize).collect();
            submitted(now, &mut state, count, Ok(ids));
            states.extend(vec![becomes; count as usize]);
        }
    };
    (0..4).for_each(|now| step(now, Running));
    // The last ones wait.
    (4..10).for_each(|now| step(now, Queued));
    step(70, Queued);
    assert_eq!(sizes, [2, 4, 12, 36, 108]);
}

#[test]
fn threads_are_those_that_workers_report() {
    let limits = FleetLimits { threads: None, ..LIMITS };
    let wants = |workers, threads, open| {
        let mut state = FleetState::default();
        let demand = Some(Demand { open, done: 0, workers, threads });
        decide(0, 0, &mut state, &limits, Some(&queue(&[Running])), demand).acts()
    };
    assert_eq!(wants(0, 0, 64), (Vec::new(), 1), "two at first, not one for each job");
    assert_eq!(wants(1, 16, 32), (Vec::new(), 1));
    assert_eq!(wants(1, 16, 33), (Vec::new(), 2));
    assert_eq!(wants(2, 32, 32), (Vec::new(), 0), "somebody else counts the rest");
}

#[test]
fn the_batch_system_is_left_alone_while_nothing_changes() {
    let mut state = FleetState::default();
    let mut looks = Vec::new();
    let states = [Running; 10];
    for now in 0..200 {
        let demand = Some(demand(1_000, now));
        if is_due(now, &state, &LIMITS, demand) {
            looks.push(now);
            look(now, &mut state, &states, demand);
        }
    }
    assert_eq!(looks, [0, 5, 35, 65, 95, 125, 155, 185]);
    // Slow answers are asked for less often.
    decide(220, 200, &mut state, &LIMITS, Some(&queue(&states)), None);
    assert_eq!(state.look_at, 420);
    // Work that nobody has a place for is none of the batch system's business; a place is.
    let more = FleetLimits { workers_max: 11, ..LIMITS };
    assert!(!is_due(225, &state, &LIMITS, Some(demand(1_000, 0))));
    assert!(is_due(225, &state, &more, Some(demand(1_000, 0))));
}
