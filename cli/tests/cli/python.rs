//! The Python module and the notebook that uses it, with the program that was built here.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::http::{has_module, is_here};
use crate::{NQUEENS, Outcome, Place};

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../python");

/// Python that finds the module and the program.
fn python(place: &Place) -> Command {
    let folder = Path::new(NQUEENS).parent().expect("a folder").to_owned();
    let others = std::env::var_os("PATH").expect("a path");
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&others)));
    let mut python = place.program("python3");
    python.arg("-B").env("PYTHONPATH", MODULE).env("PATH", path.expect("a path"));
    python
}

#[test]
fn the_module_passes_its_tests() {
    if !is_here("python3") {
        return;
    }
    let place = Place::new();
    let outcome = Outcome::of(python(&place).args(["-m", "unittest", "discover", MODULE]));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let told = &outcome.stderr;
    assert!(told.ends_with("\nOK\n") && !told.contains("Ran 0 tests"), "{told}");
}

/// What a notebook shows where it is executed. It is kept without that.
fn executed(notebook: &str, settings: &[(&str, &str)]) -> Vec<Value> {
    let place = Place::new();
    let run = "import nbclient, nbformat, sys
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=300).execute()
nbformat.write(notebook, 'executed.ipynb')";
    let notebook = Path::new(MODULE).with_file_name("examples").join(notebook);
    let mut command = python(&place);
    command.args(["-c", run]).arg(&notebook).envs(settings.iter().copied());
    let outcome = Outcome::of(command.env("IPYTHONDIR", place.path("i")));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);

    let read = |path: &Path| -> Value {
        serde_json::from_slice(&std::fs::read(path).expect("a notebook")).expect("JSON")
    };
    let outputs = |notebook: &Value| -> Vec<Value> {
        let cells = notebook["cells"].as_array().expect("cells").iter();
        cells.filter_map(|cell| cell["outputs"].as_array().cloned()).flatten().collect()
    };
    assert!(outputs(&read(&notebook)).is_empty(), "it is kept without its outputs");
    outputs(&read(&place.path("executed.ipynb")))
}

#[test]
fn the_notebooks_run() {
    if !["nbclient", "ipykernel", "matplotlib", "pandas"].into_iter().all(has_module) {
        return;
    }
    let made = executed("growth.ipynb", &[]);
    let pictures = made.iter().filter(|output| output["data"]["image/png"].is_string()).count();
    assert_eq!(pictures, 3, "growth, estimates, progress");
    let printed: String = made.iter().map(|output| output["text"].to_string()).collect();
    for said in ["18 of 18 intervals hold the published count", "jobs, 95,815,104 solutions"] {
        assert!(printed.contains(said), "{printed}");
    }

    let made = executed("records.ipynb", &[("UP_TO", "12"), ("REPEATS", "1")]);
    let printed: String = made.iter().map(|output| output["text"].to_string()).collect();
    assert!(printed.contains("14,200  border     6"), "{printed}");
    let tables: Vec<_> =
        made.iter().filter_map(|output| output["data"]["text/plain"].as_array()).map(Vec::len).collect();
    assert!(tables.len() == 2 && tables.iter().all(|lines| *lines >= 5), "run and bench, plans: {tables:?}");
}
