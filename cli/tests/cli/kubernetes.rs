//! `deploy/kubernetes`: what `kubectl` makes of the overlays is valid and runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use serde_json::Value;

use crate::http::{curl, has_module, is_here};
use crate::processes::{
    Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, ended, eventually, own_address,
};
use crate::{Outcome, Place};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The last one needs GPUs to run.
const OVERLAYS: [&str; 3] = ["one-node", "many", "gpu"];

/// The Kubernetes version whose schemas the manifests are held against.
const VERSION: &str = "1.35";

fn can_render() -> bool {
    is_here("kubectl") && is_here("curl") && has_module("kubernetes_validate")
}

/// The objects of an overlay, as YAML.
fn rendered(overlay: &str) -> String {
    let folder = Path::new(ROOT).join("deploy/kubernetes").join(overlay);
    let outcome = Outcome::of(Command::new("kubectl").arg("kustomize").arg(folder));
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{overlay}");
    outcome.stdout
}

fn objects(overlay: &str) -> Vec<Value> {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let mut command = Command::new("python3");
    let mut python = command
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut input = python.stdin.take().expect("a pipe");
    input.write_all(rendered(overlay).as_bytes()).expect("it reads");
    drop(input);
    let output = python.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The pod template of an object of this kind.
fn pod(objects: &[Value], kind: &str) -> Value {
    let object = objects.iter().find(|object| object["kind"] == kind).expect(kind);
    object["spec"]["template"]["spec"].clone()
}

#[test]
fn overlays_are_valid_and_safe() {
    if !can_render() {
        return;
    }
    for overlay in OVERLAYS {
        let place = Place::new().with_file("all.yaml", &rendered(overlay));
        let mut command = place.program("python3");
        command.args(["-m", "kubernetes_validate", "--strict", "-k", VERSION, "all.yaml"]);
        let validated = Outcome::of(&mut command);
        let said = format!("{}{}", validated.stdout, validated.stderr);
        assert_eq!(validated.code, 0, "{said}");

        let objects = objects(overlay);
        assert_eq!(said.matches(" passed ").count(), objects.len(), "{said}");
        for kind in ["StatefulSet", "Job"] {
            let pod = pod(&objects, kind);
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(pod["automountServiceAccountToken"], false);
            let container = &pod["containers"][0];
            let image = container["image"].as_str().expect("an image");
            let name = if overlay == "gpu" && kind == "Job" { "nqueens-gpu" } else { "nqueens" };
            assert!(image.ends_with(&format!("{name}:{}", env!("CARGO_PKG_VERSION"))), "{image}");
            assert_eq!(
                container["securityContext"],
                serde_json::json!({
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                    "readOnlyRootFilesystem": true,
                })
            );
            assert!(container["resources"]["requests"]["cpu"].is_string());
            assert!(container["resources"]["limits"]["cpu"].is_null(), "a quota would slow all threads down");
            for volume in pod["volumes"].as_array().expect("a list") {
                assert!(volume["secret"].is_null() || volume["secret"]["defaultMode"] == 0o440);
            }
        }
        let worker = pod(&objects, "Job");
        let env = worker["containers"][0]["env"].as_array().expect("a list");
        let drain = env.iter().find(|entry| entry["name"] == "NQUEENS_DRAIN_SECONDS").expect("it drains");
        let drain: u64 = drain["value"].as_str().and_then(|text| text.parse().ok()).expect("seconds");
        assert!(worker["terminationGracePeriodSeconds"].as_u64().expect("seconds") >= drain + 10);
    }
}

/// The command of a pod's one container, with the folders of its volumes and the addresses of the cluster here.
fn command(place: &Place, pod: &Value) -> Command {
    let container = &pod["containers"][0];
    let here = |text: &Value| {
        let text = text.as_str().expect("text");
        let host = own_address().to_string();
        let text = ["0.0.0.0", "127.0.0.1", "nqueens-coordinator"]
            .iter()
            .fold(text.to_owned(), |text, name| text.replace(name, &host));
        let folder = container["volumeMounts"].as_array().expect("a list").iter();
        folder.fold(text, |text, mount| {
            let path = mount["mountPath"].as_str().expect("a path");
            let (name, volumes) = (&mount["name"], pod["volumes"].as_array().expect("a list"));
            let volume = volumes.iter().find(|volume| volume["name"] == *name);
            let secret = volume.and_then(|volume| volume["secret"]["secretName"].as_str());
            let folder = place.path(secret.unwrap_or(name.as_str().expect("a name")));
            text.replace(path, &folder.to_string_lossy())
        })
    };
    let mut command = place.command("");
    command.args(container["args"].as_array().expect("a list").iter().map(here));
    for entry in container["env"].as_array().expect("a list") {
        let value = match (&entry["value"], &entry["valueFrom"]["fieldRef"]["fieldPath"]) {
            (Value::Null, Value::Null) => "1".to_owned(),
            (Value::Null, _) => "node-1".to_owned(),
            (value, _) => here(value),
        };
        command.env(entry["name"].as_str().expect("a name"), value);
    }
    command
}

/// Puts what the page says into the secrets.
fn make_secrets(place: &Place) {
    for secret in ["nqueens-coordinator", "nqueens-worker", "data", "spool"] {
        std::fs::create_dir(place.path(secret)).expect("a folder");
    }
    let put = |secret: &str, name: &str, content: &str| {
        let path = format!("{secret}/{name}");
        std::fs::write(place.path(&path), content).expect("a file");
        place.set_mode(&path, 0o600);
    };
    for secret in ["nqueens-coordinator", "nqueens-worker"] {
        put(secret, "worker.token", WORKER_TOKEN);
    }
    put("nqueens-coordinator", "operator.token", OPERATOR_TOKEN);
}

#[test]
fn what_the_pods_run_counts_a_board() {
    if !can_render() {
        return;
    }
    for overlay in &OVERLAYS[..2] {
        let (place, objects) = (Place::new(), objects(overlay));
        make_secrets(&place);
        let [head, node] = ["StatefulSet", "Job"].map(|kind| pod(&objects, kind));
        let mut coordinator = Coordinator::of(&mut command(&place, &head));
        let container = &head["containers"][0];
        for probe in ["livenessProbe", "readinessProbe"] {
            let asked = &container[probe]["httpGet"];
            let ports = container["ports"].as_array().expect("a list");
            let port = ports.iter().find(|port| port["name"] == asked["port"]).expect("its port");
            let scheme = asked["scheme"].as_str().unwrap_or("HTTP").to_lowercase();
            let path = asked["path"].as_str().expect("a path");
            let url = format!("{scheme}://{}:{}{path}", own_address(), port["containerPort"]);
            // As the kubelet asks: it looks at no certificate.
            eventually(probe, || (curl(&place, &format!("--insecure {url}")).code == 0).then_some(()));
        }
        // As by 'kubectl exec': the operators' commands find everything in the coordinator's container.
        let exec = |arguments: &str| {
            let container = command(&place, &head);
            let variables = container.get_envs().filter_map(|(name, value)| Some((name, value?)));
            let mut plain = place.command(arguments);
            plain.envs(variables);
            let outcome = Outcome::of(&mut plain);
            assert_eq!((outcome.code, &*outcome.stderr), (0, ""), "{overlay}: {arguments}");
            outcome.stdout
        };
        if *overlay == "many" {
            let (url, tokens) =
                (format!("https://{}:7327", own_address()), place.path("nqueens-coordinator"));
            let tokens = format!("--worker-token-file {}/worker.token", tokens.display());
            let join = exec(&format!("join create --coordinator {url} {tokens}"));
            std::fs::write(place.path("nqueens-worker/cluster.join"), join).expect("a file");
            place.set_mode("nqueens-worker/cluster.join", 0o600);
        }
        let mut worker = Background::start(&mut command(&place, &node));
        let run = exec("submit 10").trim_end().to_owned();
        let status = || serde_json::from_str::<Value>(&exec("status --json")).expect("JSON");
        let total = eventually("it is counted", || status()["runs"][0]["total"].as_str().map(str::to_owned));
        assert_eq!(total, "724", "{run}");
        assert!(exec("workers").contains("node-1"));
        for process in [&mut worker, &mut coordinator.process] {
            process.signal("-TERM");
            assert_eq!(ended(process).code, 0, "{}", process.said());
        }
        assert!(place.path("data/nqueens.db").exists() && place.path("spool/results").exists());
    }
}

/// Notes what it was asked, finds no secrets, and makes a join file.
const KUBECTL: &str = r#"#!/bin/sh
echo "$*" >> "${0%/*}/calls"
case $* in
    "get namespace"* | *"get secret"*) exit 1 ;;
    *"get job"*) cat "${0%/*}/job" ;;
    *"join create"*) echo '{}' ;;
esac
"#;

#[test]
fn one_command_makes_everything_and_workers_come_after_the_run() {
    let calls = |job: &str, arguments: &str| {
        let place = Place::new().with_file("kubectl", KUBECTL).with_file("job", job);
        place.set_mode("kubectl", 0o700);
        let mut command = place.program(format!("{ROOT}/deploy/kubernetes/start"));
        command.args(arguments.split(' ')).env("KUBECTL", place.path("kubectl"));
        let outcome = Outcome::of(&mut command);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
        let calls = std::fs::read_to_string(place.path("calls")).expect("text");
        let folder = Path::new(ROOT).canonicalize().expect("a folder");
        let calls = calls.replace(&format!("{}/deploy/kubernetes/", folder.display()), "");
        let calls = calls.replace("--namespace nqueens ", "").replace("app.kubernetes.io/name", "name");
        calls.lines().filter(|call| !call.starts_with("get")).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(calls("", "many 20 --priority 1"), @r"
    create namespace nqueens
    create secret generic nqueens-coordinator --from-file=worker.token --from-file=operator.token
    apply -k many --selector name!=nqueens-worker
    rollout status statefulset nqueens-coordinator
    exec nqueens-coordinator-0 -- /nqueens join create --coordinator https://nqueens-coordinator:7327 --worker-token-file /secrets/worker.token
    create secret generic nqueens-worker --from-file=cluster.join
    exec nqueens-coordinator-0 -- /nqueens submit 20 --priority 1
    apply -k many --selector name=nqueens-worker
    ");
    // What has ended is made again.
    let again = calls("Complete", "one-node");
    assert_snapshot!(again.split_once("rollout").expect("a rollout").1, @r"
     status statefulset nqueens-coordinator
    exec nqueens-coordinator-0 -- /nqueens join create --coordinator https://nqueens-coordinator:7327 --worker-token-file /secrets/worker.token
    create secret generic nqueens-worker --from-file=cluster.join
    delete job nqueens-worker --wait
    apply -k one-node --selector name=nqueens-worker
    ");
}
