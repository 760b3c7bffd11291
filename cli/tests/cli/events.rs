//! What a coordinator tells of itself: on its page, to a listener that is not well, and in its log.

use serde_json::{Value, json};

use crate::Place;
use crate::http::page_of;
use crate::page::shown;
use crate::processes::{Coordinator, eventually};

#[test]
fn events_are_told_in_their_order() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--lease-seconds 3 --sync-seconds 1");
    let at = coordinator.url();
    let large = place.stdout(&format!("submit 22 --coordinator {at}")).trim_end().to_owned();
    let mut worker = coordinator.worker(&place, "west", &[]);
    eventually("it works", || {
        let status = place.json(&format!("status {large} --json --coordinator {at}"));
        (status["runs"][0]["leased"].as_u64() > Some(0)).then_some(())
    });
    worker.kill();
    let lost = "worker sent no heartbeat in time: its jobs go to other workers";
    eventually("its leases run out", || coordinator.process.said().contains(lost).then_some(()));
    place.stdout(&format!("cancel {large} --yes --coordinator {at}"));
    let small = place.stdout(&format!("submit 8 --coordinator {at}")).trim_end().to_owned();
    let _other = coordinator.worker(&place, "east", &[]);
    place.stdout(&format!("watch {small} --interval 0.2 --coordinator {at}"));

    let [picture, _] = shown(&page_of(&coordinator), &small);
    let told = picture["events"].as_array().expect("a list");
    let facts: Vec<_> = told
        .iter()
        .map(|event| [&event["kind"], &event["run"], &event["worker"], &event["problem"]])
        .collect();
    let (large, small, null) = (&Value::from(large), &Value::from(small), &Value::Null);
    let expected = [
        [&"run_planned".into(), large, null, &false.into()],
        [&"worker_lost".into(), null, &json!({"id": 1, "name": "west"}), &true.into()],
        [&"run_changed".into(), large, null, &false.into()],
        [&"run_planned".into(), small, null, &false.into()],
        [&"run_done".into(), small, null, &false.into()],
    ];
    assert_eq!(facts, expected);
    assert_eq!(told[4]["text"], "N = 8: done, TOTAL 92: equal to the published count.");
    assert!(told.iter().zip(1..).all(|(event, number)| event["number"] == number));
}
