//! Engines that fail: what their workers say, and what operators are told of it.

use nqueens_model::operator::EventKind;
use nqueens_proto::v1;

use super::nothing;
use crate::common::House;

#[tokio::test]
async fn each_fault_of_a_worker_is_an_event_once() {
    let (_ledger, house) = House::fresh().await;
    let says = |faults: &[&str]| {
        let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
        v1::SyncRequest { faults, ..nothing() }
    };
    let mut worker = house.worker(1).await;
    worker.sync(says(&["the abacus failed"])).await.unwrap();
    worker.sync(says(&["the abacus failed"])).await.unwrap();
    let mut worker = house.worker(1).await;
    worker.sync(says(&["the abacus failed", "it is left alone"])).await.unwrap();
    // However often a worker says something else, nobody hears more of it.
    for number in 0..20 {
        worker.sync(says(&[&format!("story {number}"), "and another"])).await.unwrap();
        worker.sync(nothing()).await.unwrap();
    }
    house.worker(2).await.sync(says(&["the abacus failed"])).await.unwrap();
    let events = house.coordinator.operator().events();
    let told: Vec<_> = events.borrow().iter().cloned().collect();
    assert!(
        told.iter().all(|event| event.kind == EventKind::EngineFailed && event.run.is_none()),
        "{told:?}"
    );
    let told: Vec<_> = told
        .iter()
        .map(|event| (event.worker.as_ref().map_or(0, |worker| worker.id.get()), &*event.text))
        .collect();
    let expected = [
        (1, "worker 1 reports: the abacus failed."),
        (1, "worker 1 reports: it is left alone."),
        (2, "worker 2 reports: the abacus failed."),
    ];
    assert_eq!(told, expected);
    house.close().await;
}
