//! Tickets and lots: what nobody can make or foresee who does not have the database's key.

use std::num::NonZeroU32;

use hmac::{Hmac, KeyInit, Mac};
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId};
use sha2::Sha256;

use super::order::shuffled;

/// What a lease is for. Its holder can't tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    First = 0,
    /// It has one, and this is to confirm it.
    Second = 1,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Lot {
    /// Which results are counted a second time.
    Second = 2,
    /// Which image of a board is counted first.
    Image = 3,
    Recounts = 4,
    /// What the leases of a job are numbered from.
    Epoch = 5,
}

/// The key of a database, from 32 random bytes.
#[derive(Clone, Debug)]
pub(super) struct Key(Hmac<Sha256>);

impl Key {
    pub(super) fn new(bytes: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(bytes).expect("a key of any length will do"))
    }

    fn hash(&self, purpose: u8, job: JobId) -> Hmac<Sha256> {
        let hash = self.0.clone().chain_update([purpose]);
        hash.chain_update(job.run.get().to_be_bytes()).chain_update(job.number.to_be_bytes())
    }

    fn ticket(
        &self,
        purpose: Purpose,
        job: JobId,
        epoch: NonZeroU32,
        credential: &Credential,
    ) -> Hmac<Sha256> {
        self.hash(purpose as u8, job)
            .chain_update(epoch.get().to_be_bytes())
            .chain_update(credential.as_str())
    }

    /// The token of a lease that is given to a credential.
    pub(super) fn token(
        &self,
        purpose: Purpose,
        job: JobId,
        epoch: NonZeroU32,
        credential: &Credential,
    ) -> LeaseToken {
        LeaseToken { job, epoch, ticket: first_bits(self.ticket(purpose, job, epoch, credential)) }
    }

    /// What a token was given for; `None` if it was not given to this credential. The time that it takes does not tell how
    /// much of a ticket is right.
    pub(super) fn purpose(&self, token: &LeaseToken, credential: &Credential) -> Option<Purpose> {
        [Purpose::First, Purpose::Second].into_iter().find(|purpose| {
            let ticket = self.ticket(*purpose, token.job, token.epoch, credential);
            ticket.verify_truncated_left(&token.ticket.to_be_bytes()).is_ok()
        })
    }

    /// A number for a job; for all of a run by its job 0.
    pub(super) fn lot(&self, what: Lot, job: JobId) -> u64 {
        first_bits(self.hash(what as u8, job))
    }

    pub(super) fn order_of_recounts(&self, run: RunId, jobs: u32) -> Vec<u32> {
        shuffled(jobs, self.lot(Lot::Recounts, JobId { run, number: 0 }))
    }
}

fn first_bits(hash: Hmac<Sha256>) -> u64 {
    let hash = hash.finalize().into_bytes();
    u64::from_be_bytes(hash[..8].try_into().expect("8 of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_of_its_lease_and_its_credential() {
        let (key, other) = (Key::new(&[1; 32]), Key::new(&[2; 32]));
        let [mine, theirs] = ["mine", "theirs"].map(|name| Credential::named(name).expect("a name"));
        let job = JobId { run: RunId::from_random(7), number: 3 };
        let epoch = NonZeroU32::new(5).expect("not 0");
        for purpose in [Purpose::First, Purpose::Second] {
            let token = key.token(purpose, job, epoch, &mine);
            assert_eq!(key.purpose(&token, &mine), Some(purpose));
            assert_eq!(key.purpose(&token, &theirs), None);
            assert_eq!(other.purpose(&token, &mine), None);
            let forged = [
                LeaseToken { job: JobId { number: 4, ..job }, ..token },
                LeaseToken { job: JobId { run: RunId::from_random(8), ..job }, ..token },
                LeaseToken { epoch: NonZeroU32::MIN, ..token },
                LeaseToken { ticket: token.ticket ^ 1, ..token },
                LeaseToken { ticket: 0, ..token },
            ];
            assert!(forged.iter().all(|token| key.purpose(token, &mine).is_none()));
        }
    }
}
