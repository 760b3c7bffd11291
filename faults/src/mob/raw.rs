//! HTTP/2 by hand: what a client would say that is none, or that means harm.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames (RFC 9113, section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const CONTINUATION: u8 = 9;

/// Flags of frames.
pub(super) const ACK: u8 = 1;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// Settings that leave everything as it is.
pub(super) const NO_SETTINGS: &[u8] = &[];

/// Settings by which nobody may send a byte of an answer.
pub(super) const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers of a call, none of them compressed.
pub(super) fn call(method: &str, path: &str, token: &str) -> Vec<u8> {
    let authorization = format!("Bearer {token}");
    let fields = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "coordinator"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("authorization", &authorization),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).ok().filter(|&length| length < 127).expect("a short text"));
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A connection that speaks HTTP/2 so far.
pub(super) async fn greet(address: &str, settings: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).await?;
    Ok(stream)
}

/// Answers pings and reads nothing else, until it is hung up on.
pub(super) async fn stay_alive(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await?;
        if head[3] == PING && head[4] & ACK == 0 {
            stream.write_all(&frame(PING, ACK, 0, &payload)).await?;
        }
    }
}
