//! `examples/python_worker.py`: a worker that shares no code with this program.

use std::path::Path;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, cpu};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use serde_json::Value;

use crate::Place;
use crate::http::has_module;
use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, ended, eventually};

const TOKENS: [(&str, &str); 2] =
    [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];

/// A coordinator on `queens.db`, and a worker in Python.
struct Pair {
    place: Place,
    coordinator: Coordinator,
    worker: Background,
}

impl Pair {
    /// Submits these boards, changes the jobs before anybody sees them, and begins to count.
    fn start(boards: &[&str], statement: &str) -> Self {
        let place = Place::new().with_file("operator.token", OPERATOR_TOKEN);
        let coordinator = Coordinator::start(&place, &TOKENS, "--sync-seconds 1");
        for board in boards {
            let submit = format!("submit {board} --coordinator {}", coordinator.url());
            place.stdout(&format!("{submit} --operator-token-file operator.token"));
        }
        let address = coordinator.address.clone();
        assert_eq!(coordinator.stop().code, 0);
        place.sql("queens.db", statement);
        let place = place.with_file("protocol.json", &crate::stdout("doctor --protocol --json"));
        let coordinator = Coordinator::start_at(&address, &place, &TOKENS, "--sync-seconds 1");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python_worker.py");
        let mut command = place.program("python3");
        command.arg(script).args([&coordinator.address, "protocol.json"]).env("NQUEENS_TOKEN", WORKER_TOKEN);
        let worker = Background::start(&mut command);
        Self { place, coordinator, worker }
    }

    fn json(&self, command: &str) -> Value {
        let at = format!("--coordinator {} --operator-token-file operator.token", self.coordinator.url());
        self.place.json(&format!("{command} {at} --json"))
    }

    fn restart_coordinator(self) -> Self {
        let Self { place, coordinator, worker } = self;
        let address = coordinator.address.clone();
        assert_eq!(coordinator.stop().code, 0);
        let coordinator = Coordinator::start_at(&address, &place, &TOKENS, "--sync-seconds 1");
        Self { place, coordinator, worker }
    }

    /// Ends the worker as systemd would; what it said, and the runs after that.
    fn stop_worker(&mut self) -> (i32, String, Value) {
        self.worker.signal("-TERM");
        let outcome = self.worker.end();
        (outcome.code, outcome.stderr, self.json("status"))
    }
}

#[test]
fn a_program_of_others_counts_every_job() {
    if !has_module("grpc_tools") {
        return;
    }
    let plan = |kind, states| Plan::with_states_per_job(BoardSize::new(10).expect("a board"), kind, states);
    // It tells no parts of configurations that a half turn maps to themselves.
    let is_plain = |job: &Job| {
        job.class() != Class::Border
            || job.prefixes().all(|queens| queens[0] + queens[2] != 9 || queens[1] + queens[3] != 9)
    };
    // Jobs that are said to be as large as those whose parts have to be told apart.
    let enlarge = |kind: PlanKind, states| {
        let jobs = (0..).zip(plan(kind, states).jobs()).filter(|(_, job)| is_plain(job));
        let numbers: Vec<_> = jobs.map(|(number, _): (u32, _)| number.to_string()).collect();
        format!(
            "UPDATE job SET states = states + 1000000000 * (number % 7 * 11) WHERE number IN ({})
             AND run = (SELECT id FROM run WHERE n = 10 AND plan = '{kind}');",
            numbers.join(", ")
        )
    };
    let large = enlarge(PlanKind::Rows, 1_000) + &enlarge(PlanKind::Border, 50);
    let boards = [
        "8 --plan rows --job-states 500",
        "9 --plan border --job-states 500",
        "10 --plan rows --job-states 1000",
        "10 --plan border --job-states 50",
    ];
    let mut pair = Pair::start(&boards, &large);
    let totals = eventually("all boards are counted", || {
        let status = pair.json("status");
        let runs = status["runs"].as_array()?;
        assert!(pair.worker.is_running(), "{}", pair.worker.said());
        runs.iter().map(|run| run["total"].as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    assert_eq!(totals, ["92", "352", "724", "724"]);
    let workers = pair.json("workers");
    assert_eq!(workers["workers"][0]["kernels"][0], "python-dicts");
    let (code, said, _) = pair.stop_worker();
    assert_eq!((code, &*said), (0, ""), "all results were accepted");
    assert_eq!(pair.coordinator.stop().code, 0);

    let place = &pair.place;
    let parts = "SELECT plan || ' ' || states_per_job || ' ' || number || ' ' || job.states || ' ' || parts
                 FROM result JOIN job USING (run) JOIN run ON run.id = run
                 WHERE job.number = result.job AND verdict = 'accepted' AND parts IS NOT NULL";
    let told = place.ask("queens.db", parts);
    for kind in ["rows ", "border "] {
        assert!(told.iter().filter(|line| line.starts_with(kind)).count() > 5, "{told:?}");
    }
    let mut solver = Solver::recounting(cpu("scalar").expect("it runs everywhere"));
    let mut count = |part: &Job| {
        let counted = solver.count_job(part, &Control::default()).expect("not stopped");
        <[u64; 4]>::from(counted.expect("small").counts)
    };
    for line in told {
        let [kind, numbers @ .., parts] = &line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let numbers: Vec<_> = numbers.iter().map(|number| number.parse::<u64>().expect("a number")).collect();
        let [states_per_job, number, states] = numbers[..] else { panic!("{line}") };
        let plan = plan(kind.parse().expect("a plan"), states_per_job);
        let job = plan.jobs().nth(usize::try_from(number).expect("small")).expect("a job");
        let counted: Vec<_> = job.parts(states).iter().map(&mut count).collect();
        assert_eq!(serde_json::from_str::<Vec<[u64; 4]>>(parts).expect("JSON"), counted, "{line}");
    }

    let run = &place.json("status --db queens.db --json")["runs"][2]["run"];
    let run = run.as_str().expect("an id");
    let ledger = place.run(&format!("export {run} --db queens.db --format ledger")).stdout;
    assert!(ledger.contains(r#""kernels":"python-dicts""#) && ledger.contains(r#""kernel":"python-dicts""#));
    place.stdout(&format!("report {run} --db queens.db --output run.html"));
    let report = std::fs::read_to_string(place.path("run.html")).expect("a report");
    assert!(report.contains("python-dicts"));
}

#[test]
fn a_program_of_others_returns_what_it_has_not_counted() {
    if !has_module("grpc_tools") {
        return;
    }
    // In Python it would count for minutes.
    let pair = Pair::start(&["14 --plan rows"], "SELECT 1");
    let leased = |status: &Value| status["runs"][0]["leased"].as_u64().expect("a number");
    eventually("it has a job", || (leased(&pair.json("status")) > 0).then_some(()));
    // While the coordinator is away it waits, and then goes on.
    let mut pair = pair.restart_coordinator();
    let done = |status: &Value| status["runs"][0]["done"].as_u64().expect("a number");
    let before = done(&pair.json("status"));
    eventually("it goes on", || (done(&pair.json("status")) > before).then_some(()));
    let (code, said, status) = pair.stop_worker();
    assert_eq!((code, &*said, leased(&status)), (0, "", 0));
    assert_eq!(status["runs"][0]["quarantined"], 0);
    assert_eq!(pair.coordinator.stop().code, 0);
    assert_eq!(pair.place.ask("queens.db", "SELECT sum(failures + lapses) FROM job"), ["0"]);

    // It does not touch jobs that it does not understand.
    let mut pair = Pair::start(&["6 --plan rows"], "UPDATE job SET class = 'colours', bound1 = 0");
    let outcome = ended(&mut pair.worker);
    assert_eq!((outcome.code, &*outcome.stderr), (1, "this worker can't count jobs of class colours\n"));
    assert_eq!(leased(&pair.json("status")), 0);
}
