//! Messages to bytes and back, as prost does it; but bytes that are no message are the caller's mistake.

use std::marker::PhantomData;
use std::sync::Arc;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

/// Tonic's own codec calls undecodable bytes `INTERNAL`, an error of the side that reads them. Here they are
/// `INVALID_ARGUMENT`, with the [`prost::DecodeError`] as source. A source stays in its process, so a client can tell an
/// answer that it can't read from a refusal.
pub(crate) struct WireCodec<Out, In>(PhantomData<(Out, In)>);

impl<Out, In> Default for WireCodec<Out, In> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<Out, In> Codec for WireCodec<Out, In>
where
    Out: Message + Send + 'static,
    In: Message + Default + Send + 'static,
{
    type Encode = Out;
    type Decode = In;
    type Encoder = ProstEncoder<Out>;
    type Decoder = WireDecoder<In>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<Out, In>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        WireDecoder(PhantomData)
    }
}

pub(crate) struct WireDecoder<In>(PhantomData<In>);

impl<In: Message + Default> Decoder for WireDecoder<In> {
    type Item = In;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<In>, Status> {
        In::decode(bytes).map(Some).map_err(|error| {
            let mut status = Status::invalid_argument(error.to_string());
            status.set_source(Arc::new(error));
            status
        })
    }
}
