//! Compiles the wire's definition in plain Rust: no protoc needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=nqueens");
    let files = protox::compile(["nqueens/v1/worker.proto"], ["."])?;
    tonic_prost_build::configure().codec_path("crate::codec::WireCodec").compile_fds(files)?;
    Ok(())
}
