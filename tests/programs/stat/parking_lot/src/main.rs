// SPDX-License-Identifier: Apache-2.0
//
// Disease: one Mutex of the crate parking_lot around a map, taken for each number.
// Cure (second argument: cured): a map for each thread.
use parking_lot::Mutex;
use std::{collections::HashMap, env, thread};

#[inline(never)]
fn count(map: &Mutex<HashMap<u64, u64>>, key: u64) {
    *map.lock().entry(key).or_insert(0) += 1;
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let threads: u64 = words[1].parse().unwrap();
    let cured = words.len() > 2;
    let map = Mutex::new(HashMap::new());
    thread::scope(|scope| {
        for index in 0..threads {
            let map = &map;
            scope.spawn(move || {
                let mut mine = HashMap::new();
                let mut x = index + 1;
                for _ in 0..12_000_000 / threads {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    if cured {
                        *mine.entry(x % 1000).or_insert(0) += 1;
                    } else {
                        count(map, x % 1000);
                    }
                }
            });
        }
    });
}
