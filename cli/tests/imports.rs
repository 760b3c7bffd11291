//! No two modules of a crate import each other, directly or by way of others; only a module and its own children may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of a module within its crate: `["command", "watch", "draw"]`; empty for the crate's root.
type Module = Vec<String>;

/// Each module with those that it needs: its children, and whatever its text names that is not above it.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The text of each module in a folder.
fn read(folder: &Path, above: &[String], modules: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut module = above.to_vec();
        if !["main", "lib", "mod"].contains(&&*stem) {
            module.push(stem);
        }
        if path.is_dir() {
            read(&path, &module, modules);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            modules.insert(module, fs::read_to_string(&path).expect("text"));
        }
    }
}

/// The names and signs of a module's code, without its comments.
fn tokens(text: &str) -> Vec<&str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_'))
        .flat_map(|part| {
            let end = part.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_').len();
            [&part[..end], part[end..].trim()]
        })
        .filter(|token| !token.is_empty())
        .collect()
}

/// Reads one path or, in braces, several; adds what they name, and returns the tokens that follow.
fn follow<'a>(mut rest: &'a [&'a str], mut path: Module, named: &mut Vec<Module>) -> &'a [&'a str] {
    loop {
        match rest {
            ["{", inner @ ..] => {
                rest = inner;
                while !matches!(rest, ["}", ..] | []) {
                    rest = follow(rest, path.clone(), named);
                    rest = rest.strip_prefix(&[","]).unwrap_or(rest);
                }
                return rest.get(1..).unwrap_or_default();
            }
            ["super", ":", ":", more @ ..] => {
                path.pop();
                rest = more;
            }
            ["crate" | "self", ":", ":", more @ ..] => rest = more,
            [name, ":", ":", more @ ..] => {
                path.push((*name).to_owned());
                rest = more;
            }
            [name, more @ ..] => {
                path.push((*name).to_owned());
                named.push(path);
                // What an import is called here does not matter.
                return if let ["as", _, more @ ..] = more { more } else { more };
            }
            [] => return rest,
        }
    }
}

fn imports(folder: &Path) -> Imports {
    let mut modules = BTreeMap::new();
    read(folder, &[], &mut modules);
    let needs = |module: &Module, text: &str| {
        let tokens = tokens(text);
        let mut named = Vec::new();
        for at in 0..tokens.len() {
            let begins = at == 0 || tokens[at - 1] != ":";
            match tokens[at] {
                "crate" if begins => follow(&tokens[at..], Module::new(), &mut named),
                "super" if begins => follow(&tokens[at..], module.clone(), &mut named),
                _ => &[],
            };
        }
        // A path goes on beyond the module, to what is in it.
        let found = named.into_iter().filter_map(|mut path| {
            while !modules.contains_key(&path) {
                path.pop()?;
            }
            Some(path)
        });
        let children =
            modules.keys().filter(|other| other.split_last().is_some_and(|(_, up)| up == &**module));
        found.chain(children.cloned()).filter(|other| !module.starts_with(other)).collect()
    };
    modules.iter().map(|(module, text)| (module.clone(), needs(module, text))).collect()
}

/// The modules on circles, and between two of them.
fn circles(mut imports: Imports) -> Imports {
    loop {
        let before = imports.len();
        let left: BTreeSet<_> = imports.keys().cloned().collect();
        for needs in imports.values_mut() {
            needs.retain(|module| left.contains(module));
        }
        let needed: BTreeSet<_> = imports.values().flatten().cloned().collect();
        imports.retain(|module, needs| !needs.is_empty() && needed.contains(module));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn no_modules_import_each_other() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let manifest = fs::read_to_string(workspace.join("Cargo.toml")).expect("a manifest");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let crates: Vec<_> = members.expect("members").0.split('"').skip(1).step_by(2).collect();
    assert!(crates.contains(&"fleet") && crates.contains(&"kernel/gpu"), "{crates:?}");
    for name in crates {
        let imports = imports(&workspace.join(name).join("src"));
        assert!(!imports.is_empty(), "the modules of {name} are found");
        let circles = circles(imports);
        let lines = circles.iter().map(|(module, needs)| {
            let needs = needs.iter().map(|needed| needed.join("::")).collect::<Vec<_>>();
            format!("  {} needs {}\n", module.join("::"), needs.join(", "))
        });
        let lines: String = lines.collect();
        assert!(lines.is_empty(), "modules of {name} import each other:\n{lines}");
    }
}

#[test]
fn circles_are_found() {
    let module = |name: &str| name.split("::").map(str::to_owned).collect::<Module>();
    let imports = |pairs: &[(&str, &[&str])]| {
        let pairs =
            pairs.iter().map(|(name, needs)| (module(name), needs.iter().map(|need| module(need)).collect()));
        pairs.collect::<Imports>()
    };
    let straight = imports(&[("top", &["a", "b"]), ("a", &["b"]), ("b", &[])]);
    assert_eq!(circles(straight), Imports::new());
    let round = imports(&[
        ("top", &["a"]),
        ("a", &["a::child"]),
        ("a::child", &["b"]),
        ("b", &["a", "leaf"]),
        ("leaf", &[]),
    ]);
    assert_eq!(
        circles(round).into_keys().collect::<Vec<_>>(),
        [module("a"), module("a::child"), module("b")]
    );

    let text = "use super::{self as above, other::{One, two}}; // crate::not\nfn f() { crate::far::g::<crate::near::H>() }";
    let code = tokens(text);
    let mut named = Vec::new();
    let rest = follow(&code[1..], module("up::here"), &mut named);
    assert_eq!(named, ["up::self", "up::other::One", "up::other::two"].map(module));
    assert_eq!(rest[0], ";");
}
