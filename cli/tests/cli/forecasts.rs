//! `nqueens estimate`: what a run would find and cost.

use serde_json::{Value, json};

use crate::Place;

/// What is estimated with little to sample and to measure.
fn estimate(arguments: &str) -> Value {
    Place::new().json(&format!("estimate {arguments} --samples 2000 --speed 1e9 --json"))
}

/// The number and its bounds.
fn bounds(estimate: &Value) -> [f64; 3] {
    ["low", "value", "high"].map(|key| estimate[key].as_f64().expect("a number"))
}

#[test]
fn a_sample_comes_near_to_what_is_published_and_small_boards_are_counted() {
    for (n, plan, published) in [(18, "border", 666_090_624.0), (17, "rows", 95_815_104.0)] {
        let estimate = estimate(&format!("{n} --plan {plan}"));
        let [low, value, high] = bounds(&estimate["total"]);
        assert!(low < published && published < high, "{estimate}");
        assert!((value / published - 1.0).abs() < 0.1 && (high - low) / value < 0.2, "{estimate}");
        assert_eq!(estimate["published"].as_str().unwrap().parse(), Ok(published));
    }
    for (n, total) in [(1, 1.0), (3, 0.0), (4, 2.0), (13, 73_712.0)] {
        for plan in ["rows", "border"] {
            let estimate = estimate(&format!("{n} --plan {plan}"));
            assert_eq!(estimate["total"], json!({ "value": total, "low": total, "high": total }));
        }
    }
}

#[test]
fn the_speed_on_a_small_board_is_that_of_the_engine() {
    let place = Place::new();
    let speed = |arguments: &str| {
        let estimate =
            place.json(&format!("estimate {arguments} --kernel scalar --threads 1 --samples 200 --json"));
        assert_eq!(estimate["speed_from"], "measured");
        estimate["states_per_s"].as_f64().expect("a number")
    };
    for plan in ["rows", "border"] {
        let large = speed(&format!("17 --plan {plan}"));
        for n in [1, 10] {
            let small = speed(&format!("{n} --plan {plan}"));
            // A count that has just begun is slower by a factor of 100.
            assert!((0.2..5.0).contains(&(small / large)), "N = {n}, {plan}: {small}, and {large} at N = 17");
        }
    }
}

#[test]
fn costs_follow_from_states() {
    let estimate = estimate("20 --plan border --kernel scalar --threads-total 100");
    let core_hours = bounds(&estimate["states"]).map(|states| states / 1e9 / 3_600.0);
    for (key, factor) in [("core_hours", 1.0), ("wall_hours", 0.01)] {
        for (value, core_hours) in bounds(&estimate[key]).into_iter().zip(core_hours) {
            assert!((value / (core_hours * factor) - 1.0).abs() < 1e-6, "{key}: {estimate}");
        }
    }
    let keys = [
        ("n", json!(20)),
        ("plan", json!("border")),
        ("kernel", json!("scalar")),
        ("samples", json!(2000)),
        ("seed", json!(1)),
        ("states_per_s", json!(1e9)),
        ("speed_from", json!("given")),
        ("scaled_from_n", Value::Null),
        ("total_by_row_sets", Value::Null),
        ("threads_total", json!(100)),
        ("jobs", json!(955)),
        // 150 bytes a job besides its own 43,724 in all, and the empty file.
        ("database_bytes", json!(45_000 + 955 * 150 + 43_724)),
    ];
    for (key, expected) in &keys {
        assert_eq!(&estimate[*key], expected, "{key}");
    }
    assert_eq!(estimate.as_object().unwrap().len(), keys.len() + 6);
    assert!(estimate["spent_s"].as_f64().unwrap() > 0.0, "{estimate}");
}

#[test]
fn colours_are_counted_or_sampled_by_row_sets() {
    let place = Place::new();
    let of = |arguments: &str| {
        place.json(&format!("estimate {arguments} --plan colours --samples 2000 --memory 64MB --json"))
    };
    let counted = of("12");
    let exactly = json!({ "value": 14200.0, "low": 14200.0, "high": 14200.0 });
    assert_eq!((&counted["plan"], &counted["total_by_row_sets"]), (&json!("colours"), &exactly));
    // A sample, and the two ways to the same number.
    let sampled = of("19 --threads 1");
    for total in ["total", "total_by_row_sets"] {
        let [low, value, high] = bounds(&sampled[total]);
        assert!(low < high && (value / 4_968_057_848.0 - 1.0).abs() < 0.2, "{sampled}");
    }
    let [low, hours, high] = bounds(&sampled["core_hours"]);
    assert!(0.0 < low && low < hours && hours < high, "{sampled}");
    assert_eq!((&sampled["speed_from"], &sampled["scaled_from_n"]), (&json!("measured"), &Value::Null));
    let why = "the scalar kernel has no multiplication, so its speed can't be estimated; choose --plan border or another kernel";
    assert_eq!(place.failure("estimate 14 --plan colours --kernel scalar"), why);
}

#[test]
fn people_read_it_line_by_line() {
    let text = Place::new()
        .stdout("estimate 12 --plan border --kernel portable --speed 1e6 --threads 1 --threads-total 2");
    let headings: Vec<_> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let expected =
        ["solutions", "published", "states", "speed", "core-hours", "wall", "jobs", "database", "estimated"];
    assert_eq!(headings, expected, "{text}");
    assert!(text.contains("\nsolutions     14,200, counted\npublished     14,200\n"), "{text}");
    assert!(text.contains("\nspeed         1.00 M states/s per thread, as given\n"), "{text}");
}
