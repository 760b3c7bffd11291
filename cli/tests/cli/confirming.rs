//! Totals as if no count were published: what each command says of them. So it will be for N = 28.

use crate::Place;

/// What a total lacks that nobody counted twice.
const UNCHECKED: &str = "counted, not confirmed: 0 of 8 second counts under another credential and recounts agree (export the ledger; 'nqueens verify \
                         --sample 8' counts more); 0 of 8 recounts agree (only a coordinator without --no-recounts makes them)";

#[test]
fn a_total_that_one_process_counted_is_not_confirmed() {
    let place = Place::new();
    let printed = place.stdout("run 8 --plan rows --unpublished --threads 1");
    assert_eq!(printed.lines().rev().nth(1), Some(UNCHECKED));
    // It is done, whoever asks, and however.
    let again = place.json("run 8 --json");
    assert_eq!(
        (&again["total"], &again["check"], &again["confirmed"]),
        (&"92".into(), &"symmetric".into(), &false.into())
    );
    let terms = place.stdout("export --db nqueens-8.db --format bfile");
    assert_eq!(terms, "# A000170 (TOTAL: all solutions)\n# counted, not confirmed:\n8 92\n");
    let run = again["run"].as_str().expect("a name");
    let status = place.stdout("status --db nqueens-8.db");
    assert_eq!(status.lines().last(), Some(&*format!("{run}: {UNCHECKED}")));
    let status = &place.json("status --db nqueens-8.db --json")["runs"][0];
    assert_eq!(
        (&status["confirmed"], &status["missing"].as_array().map(Vec::len)),
        (&false.into(), &Some(2))
    );
    assert_eq!(status["estimate"]["checks_wanted"], 8, "there are no more jobs");
    for html in ["", " --html"] {
        let report = place.run(&format!("report {run} --db nqueens-8.db{html}"));
        let reported = report.stdout.replace("&#39;", "'");
        assert!(reported.contains(&format!("The total is {UNCHECKED}.")), "{reported}");
        assert!(reported.contains("confirmed"), "{reported}");
    }
}
