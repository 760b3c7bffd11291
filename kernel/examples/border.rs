//! scratch
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::subproblem::Subproblem;
type Q = [u8; 4];
fn rot(n: u8, q: Q) -> Q { [n - 1 - q[3], q[0], n - 1 - q[1], q[2]] }
fn mir(n: u8, q: Q) -> Q { [n - 1 - q[0], q[3], n - 1 - q[2], q[1]] }
fn board(size: BoardSize, q: Q) -> Option<Subproblem> {
    let n = size.get() as u8;
    let e = n - 1;
    let mut b = Subproblem::empty(size);
    let mut done: Vec<(u8, u8)> = vec![];
    for (r, c) in [(0, q[0]), (q[1], e), (e, q[2]), (q[3], 0)] {
        if done.contains(&(r, c)) { continue; }
        b = b.place(r, c)?;
        done.push((r, c));
    }
    (done.len() >= 2).then_some(b)
}
fn consistent(n: u8, [t, r, b, l]: Q) -> bool {
    let e = n - 1;
    (t == 0) == (l == 0) && (t == e) == (r == 0) && (b == 0) == (l == e) && (b == e) == (r == e)
}
fn cost(b: &Subproblem) -> f64 {
    let m = b.rows().len();
    b.rows().iter().enumerate().map(|(j, o)| (m - j) as f64 * (f64::from(o.allowed.count_ones()) + 0.1).ln()).sum()
}
fn all(size: BoardSize) -> Vec<(u64, Subproblem)> {
    let n = size.get() as u8;
    let mut out = vec![];
    for t in 0..n { for r in 0..n { for b in 0..n { for l in 0..n {
        let q = [t, r, b, l];
        if !consistent(n, q) || board(size, q).is_none() { continue; }
        let mut im = vec![]; let mut x = q;
        for _ in 0..4 { im.push(x); im.push(mir(n, x)); x = rot(n, x); }
        if *im.iter().min().unwrap() != q { continue; }
        let best = (0..4).map(|i| board(size, im[2 * i]).unwrap()).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap();
        im.sort_unstable(); im.dedup();
        out.push((im.len() as u64, best));
    }}}}
    out
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let size: BoardSize = a[1].parse().unwrap();
    let jobs = all(size);
    for name in &a[2..] {
        let kernel: Kernel = name.parse().unwrap();
        let mut engine = kernel.engine().unwrap();
        let control = Control::default();
        let t = std::time::Instant::now();
        let total: u64 = jobs.iter().map(|(w, b)| w * engine.count(b, &control).unwrap().completions).sum();
        println!("N={size} {kernel} jobs={} total={total} states={} t={:.3}", jobs.len(), control.states(), t.elapsed().as_secs_f64());
    }
}
