// SPDX-License-Identifier: Apache-2.0

//! tokio's multi-thread runtime: the rows of ../workloads.hpp, which says what each means. Its tasks have no stack: what
//! waits is a state machine that the compiler made. A task is always queued. There is no condition variable: a Notify
//! for each side stands for it.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::task::{Context, Wake};
use tokio::sync::{Mutex, Notify};
use tokio::task::{spawn, yield_now, JoinHandle};

const FIB: i64 = 27;
const SKYNET: i64 = 1_000_000;
const YIELDS: i64 = 5000;
const TRIPS: i64 = 2000;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}
extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    fn alarm(seconds: u32) -> u32;
}

fn clock_ns(clock: i32) -> f64 {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(clock, &mut now) };
    now.seconds as f64 * 1e9 + now.nanoseconds as f64
}
fn wall_ns() -> f64 {
    clock_ns(1)
}
fn cpu_ns() -> f64 {
    clock_ns(2)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

async fn measure<F: Fn() -> Boxed<f64>>(scale: f64, unit: F) {
    const ROUND: f64 = 15e6;
    let end = wall_ns() + 10.0 * ROUND * scale;
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    unit().await;
    loop {
        let (mut operations, mut now) = (0.0, 0.0);
        let (wall_before, cpu_before) = (wall_ns(), cpu_ns());
        while now - wall_before < ROUND * scale {
            operations += unit().await;
            now = wall_ns();
        }
        wall.push((now - wall_before) / operations);
        cpu.push((cpu_ns() - cpu_before) / operations);
        if wall.len() >= 7 || wall_ns() >= end {
            break;
        }
    }
    println!("ns {:.3} {:.3}", median(wall), median(cpu));
}

fn compute(ns: f64) {
    let end = wall_ns() + ns;
    while wall_ns() < end {}
}

async fn join_all(handles: Vec<JoinHandle<()>>) {
    for handle in handles {
        handle.await.unwrap();
    }
}

async fn batch(n: usize) -> f64 {
    let mut handles = Vec::with_capacity(n);
    for _ in 0..n {
        handles.push(spawn(async {}));
    }
    join_all(handles).await;
    n as f64
}

async fn flat(ns: f64) -> f64 {
    let mut handles = Vec::with_capacity(1000);
    for _ in 0..1000 {
        handles.push(spawn(async move { compute(ns) }));
    }
    join_all(handles).await;
    1000.0
}

async fn one_at_a_time() -> f64 {
    for _ in 0..1000 {
        spawn(async {}).await.unwrap();
    }
    1000.0
}

static ENDED: AtomicI64 = AtomicI64::new(0);

async fn detach() -> f64 {
    let before = ENDED.load(Ordering::Acquire);
    for _ in 0..1000 {
        spawn(async {
            ENDED.fetch_add(1, Ordering::Relaxed);
        });
    }
    while ENDED.load(Ordering::Acquire) != before + 1000 {
        yield_now().await;
    }
    1000.0
}

async fn yield_all(tasks: i64) -> f64 {
    let mut handles = Vec::new();
    for _ in 0..tasks {
        handles.push(spawn(async {
            for _ in 0..YIELDS {
                yield_now().await;
            }
        }));
    }
    join_all(handles).await;
    (tasks * YIELDS) as f64
}

fn fib(n: i64) -> Boxed<i64> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let one = spawn(fib(n - 1));
        let two = fib(n - 2).await;
        one.await.unwrap() + two
    })
}

async fn fib_all() -> f64 {
    let (mut before, mut spawns) = (0, 1);
    for _ in 0..FIB {
        (before, spawns) = (spawns, before + spawns);
    }
    assert_eq!(fib(FIB).await, before);
    (spawns - 1) as f64
}

fn skynet(first: i64, size: i64) -> Boxed<i64> {
    Box::pin(async move {
        if size == 1 {
            return first;
        }
        let parts: Vec<_> = (0..10).map(|i| spawn(skynet(first + i * size / 10, size / 10))).collect();
        let mut sum = 0;
        for part in parts {
            sum += part.await.unwrap();
        }
        sum
    })
}

async fn skynet_all() -> f64 {
    assert_eq!(skynet(0, SKYNET).await, SKYNET * (SKYNET - 1) / 2);
    SKYNET as f64
}

struct Pair {
    turn: Mutex<usize>,
    turned: [Notify; 2],
}

async fn play(pair: Arc<Pair>, me: usize) {
    for _ in 0..TRIPS {
        loop {
            let mut turn = pair.turn.lock().await;
            if *turn == me {
                *turn = 1 - me;
                pair.turned[1 - me].notify_one();
                break;
            }
            drop(turn);
            pair.turned[me].notified().await; // a notification that came before is kept
        }
    }
}

async fn round_trip() -> f64 {
    let pair = Arc::new(Pair { turn: Mutex::new(0), turned: [Notify::new(), Notify::new()] });
    join_all(vec![spawn(play(pair.clone(), 0)), spawn(play(pair, 1))]).await;
    TRIPS as f64
}

async fn lock_and_unlock() -> f64 {
    let mutex = Mutex::new(());
    for _ in 0..10000 {
        drop(mutex.lock().await);
    }
    10000.0
}

async fn contend() -> f64 {
    const TIMES: i64 = 2000;
    let mutex = Arc::new(Mutex::new(0));
    let mut handles = Vec::new();
    for _ in 0..4 {
        let mutex = mutex.clone();
        handles.push(spawn(async move {
            for _ in 0..TIMES {
                *mutex.lock().await += 1;
            }
        }));
    }
    join_all(handles).await;
    assert_eq!(*mutex.lock().await, 4 * TIMES);
    (4 * TIMES) as f64
}

fn resident_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<f64>().unwrap() * 4096.0
}

async fn memory(scale: f64) {
    let count = (100000.0 * scale).min(1000000.0) as i64;
    let waiting = Arc::new(AtomicI64::new(0));
    let go_on = Arc::new(Notify::new());
    let mut handles = Vec::with_capacity(count as usize);
    let before = resident_bytes();
    for _ in 0..count {
        let (waiting, go_on) = (waiting.clone(), go_on.clone());
        handles.push(spawn(async move {
            let notified = go_on.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            waiting.fetch_add(1, Ordering::Release);
            notified.await;
        }));
    }
    while waiting.load(Ordering::Acquire) != count {
        yield_now().await;
    }
    let after = resident_bytes();
    go_on.notify_waiters();
    join_all(handles).await;
    println!("bytes {:.0}", (after - before) / count as f64);
}

async fn run(row: String, scale: f64) {
    match row.as_str() {
        "batched" | "queued" => measure(scale, || Box::pin(batch(1000))).await,
        "one" => measure(scale, || Box::pin(one_at_a_time())).await,
        "inflight" => measure(scale, || Box::pin(batch(50000))).await,
        "detached" => measure(scale, || Box::pin(detach())).await,
        "yield2" => measure(scale, || Box::pin(yield_all(2))).await,
        "yield-in-two" | "yield4" => println!("none a task has no call depth"),
        "fib" => measure(scale, || Box::pin(fib_all())).await,
        "skynet" => measure(scale, || Box::pin(skynet_all())).await,
        "roundtrip" => measure(scale, || Box::pin(round_trip())).await,
        "lock" => measure(scale, || Box::pin(lock_and_unlock())).await,
        "contended" => measure(scale, || Box::pin(contend())).await,
        "memory" => memory(scale).await,
        _ => {
            let ns: f64 = row.trim_start_matches("flat").trim_start_matches("-queued").parse().unwrap();
            measure(scale, move || Box::pin(flat(ns))).await
        }
    }
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(workers).build().unwrap()
}

struct Nobody;
impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Outside of any runtime, since one cannot end inside another.
fn life(workers: usize, scale: f64) {
    let measured = measure(scale, move || {
        drop(runtime(workers));
        Box::pin(async { 1.0 })
    });
    let ready = Box::pin(measured).as_mut().poll(&mut Context::from_waker(&Arc::new(Nobody).into()));
    assert!(ready.is_ready());
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.len() != 4 {
        eprintln!("usage: tokio ROW WORKERS SCALE");
        std::process::exit(2);
    }
    let (workers, scale) = (words[2].parse().unwrap(), words[3].parse().unwrap());
    unsafe { alarm(120) }; // a benchmark that hangs has failed
    if words[1] == "life" {
        return life(workers, scale);
    }
    let row = words[1].clone();
    let task = async move { spawn(run(row, scale)).await.unwrap() };
    runtime(workers).block_on(task);
}
