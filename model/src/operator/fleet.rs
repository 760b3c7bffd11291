use serde::{Deserialize, Serialize};

/// A fleet, as it tells the coordinator again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// Its folder and host: whoever has the same is the same fleet.
    pub place: String,
    /// It was told to submit beside others.
    pub also: bool,
    /// Without another word from it for so long, it is gone.
    pub seconds: u32,
}
