//! How a run went over time, and what it has cost.

use nqueens_model::operator::{Moment, RunDetail};

use super::operator::interval;
use super::{InvalidMessage, invalid};
use crate::v1;

impl From<RunDetail> for v1::GetHistoryResponse {
    fn from(RunDetail { moments, being_counted, cpu_us }: RunDetail) -> Self {
        Self { moments: moments.into_iter().map(Into::into).collect(), being_counted, cpu_us }
    }
}

impl TryFrom<v1::GetHistoryResponse> for RunDetail {
    type Error = InvalidMessage;

    fn try_from(wire: v1::GetHistoryResponse) -> Result<Self, Self::Error> {
        let v1::GetHistoryResponse { moments, being_counted, cpu_us } = wire;
        let moments = moments.into_iter().map(Moment::try_from).collect::<Result<_, _>>()?;
        Ok(Self { moments, being_counted, cpu_us })
    }
}

impl From<Moment> for v1::Moment {
    fn from(moment: Moment) -> Self {
        Self {
            at_ms: moment.at,
            share_done: moment.share_done,
            states_per_s: moment.states_per_s,
            estimated_total: moment.total.map(Into::into),
        }
    }
}

impl TryFrom<v1::Moment> for Moment {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Moment) -> Result<Self, Self::Error> {
        if !(0.0..=1.0).contains(&wire.share_done) {
            return Err(invalid("share_done", "must be a share"));
        }
        if !(wire.states_per_s >= 0.0 && wire.states_per_s.is_finite()) {
            return Err(invalid("states_per_s", "must be a speed"));
        }
        Ok(Self {
            at: wire.at_ms,
            share_done: wire.share_done,
            states_per_s: wire.states_per_s,
            total: wire.estimated_total.map(|total| interval("estimated_total", total)).transpose()?,
        })
    }
}
