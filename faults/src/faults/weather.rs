//! A network that delays, stalls, loses, half-closes and resets.

use nqueens_kernel::random::Random;

use super::{Fault, pause};
use crate::check::Reference;
use crate::cluster::Cluster;
use crate::proxy::Weather;

pub(super) struct BadWeather;

impl Fault for BadWeather {
    fn name(&self) -> &'static str {
        "weather"
    }

    fn weight(&self) -> usize {
        2
    }

    fn strike(&self, cluster: &mut Cluster, _: &Reference, random: &mut Random) {
        for _ in 0..random.number(2..=5) {
            let weather = match random.index(6) {
                0 => Weather { delay_ms: random.number(10..=800), ..Weather::default() },
                1 => Weather { stalled: true, ..Weather::default() },
                2 => Weather { cut: true, ..Weather::default() },
                3 => Weather { delay_ms: 20, reset: random.number(50..=500), ..Weather::default() },
                4 => Weather { delay_ms: 20, swallow: random.number(50..=500), ..Weather::default() },
                _ => Weather { delay_ms: 20, half_close: random.number(50..=500), ..Weather::default() },
            };
            if random.permille(500) {
                cluster.set_weather(weather);
            } else {
                let at = random.index(cluster.stations.len() + 1);
                cluster.stations.get(at).map_or(&cluster.front, |station| &station.proxy).set(weather);
            }
            pause(random, 300..=2_000);
        }
        // What was swallowed would be missed only after a while, by the calls' own time limit.
        cluster.set_weather(Weather { cut: true, ..Weather::default() });
        pause(random, 50..=200);
        cluster.set_weather(Weather::default());
    }
}
