//! A TCP proxy that delays, cuts and resets connections.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nqueens_kernel::random::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// What happens on the way. Shares are of 1,000 for each piece of up to 16 KiB that is passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    /// Maximum delay of a piece, in milliseconds.
    pub(crate) delay_ms: u64,
    /// Nothing moves until the weather changes; nothing is lost either.
    pub(crate) stalled: bool,
    /// Connections that there are break, and new ones are broken at once.
    pub(crate) cut: bool,
    /// Part of a piece is passed on, then the connection is reset on both sides.
    pub(crate) reset: u64,
    /// From here on nothing passes in this direction, and no side is told.
    pub(crate) swallow: u64,
    /// From here on nothing passes in this direction, and the receiver sees the end of the stream.
    pub(crate) half_close: u64,
}

/// A listener that forwards everything to another address.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    weather: watch::Sender<Weather>,
}

impl Proxy {
    pub(crate) async fn start(on: IpAddr, target: SocketAddr, random: Random) -> Self {
        let listener = TcpListener::bind((on, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (weather, seen) = watch::channel(Weather::default());
        tokio::spawn(accept(listener, target, seen, random));
        Self { address, weather }
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

/// The connection must be reset on both sides.
struct Broken;

impl From<std::io::Error> for Broken {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    weather: watch::Receiver<Weather>,
    mut random: Random,
) {
    // An error is one connection's (it was reset before it was accepted); the next may be well.
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (there, back) = (random.fork(), random.fork());
        let weather = weather.clone();
        tokio::spawn(async move {
            if client.set_zero_linger().is_err() || weather.borrow().cut {
                return;
            }
            let Ok(server) = TcpStream::connect(target).await else { return };
            // Whatever is dropped without a farewell is reset. Small pieces leave at once.
            if server.set_zero_linger().or(server.set_nodelay(true)).is_err()
                || client.set_nodelay(true).is_err()
            {
                return;
            }
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let _ = tokio::try_join!(
                pass(from_client, to_server, weather.clone(), there),
                pass(from_server, to_client, weather, back),
            );
        });
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    mut random: Random,
) -> Result<(), Broken> {
    let mut piece = vec![0; 16 << 10];
    let mut silent = false;
    loop {
        let length = tokio::select! {
            read = from.read(&mut piece) => read?,
            changed = weather.wait_for(|weather| weather.cut) => {
                drop(changed);
                return Err(Broken);
            }
        };
        if length == 0 {
            to.shutdown().await?;
            return Ok(());
        }
        let now = *weather.borrow_and_update();
        sleep(Duration::from_millis(random.number(0..=now.delay_ms))).await;
        if now.stalled && weather.wait_for(|weather| !weather.stalled).await.is_err() {
            return Err(Broken);
        }
        if random.permille(now.reset) {
            let part = random.index(length);
            to.write_all(&piece[..part]).await?;
            // What is on its way is not to be overtaken by the reset.
            sleep(Duration::from_millis(5)).await;
            return Err(Broken);
        }
        if !silent && random.permille(now.half_close) {
            to.shutdown().await?;
            silent = true;
        }
        silent |= random.permille(now.swallow);
        if !silent {
            to.write_all(&piece[..length]).await?;
        }
    }
}
