//! Who may speak to a coordinator: workers by one token, operators by another, neither by the other's.

use nqueens_proto::Token;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};
use tracing::debug;

use crate::error::Error;

/// The tokens that a coordinator asks for.
#[derive(Clone, Debug, Default)]
pub struct Access {
    worker: Option<Token>,
    operator: Option<Token>,
}

impl Access {
    /// Asks workers for one token and operators for another, or either for nothing where there is none.
    pub fn new(worker: Option<Token>, operator: Option<Token>) -> Result<Self, Error> {
        if let (Some(worker), Some(operator)) = (&worker, &operator) {
            let mut metadata = MetadataMap::new();
            worker.attach(&mut metadata);
            if operator.authorizes(&metadata) {
                return Err(Error::SameTokens);
            }
        }
        Ok(Self { worker, operator })
    }

    /// Whether nobody is let in without a token.
    pub fn is_complete(&self) -> bool {
        self.worker.is_some() && self.operator.is_some()
    }

    /// For the workers' service.
    pub(crate) fn workers(&self) -> Guard {
        Guard { wanted: self.worker.clone(), other: self.operator.clone(), role: "worker" }
    }

    /// For the operators' service.
    pub(crate) fn operators(&self) -> Guard {
        Guard { wanted: self.operator.clone(), other: self.worker.clone(), role: "operator" }
    }
}

/// Looks at a call's token before anything else of it is read.
#[derive(Clone)]
pub(crate) struct Guard {
    wanted: Option<Token>,
    /// The other service's token: known, but not for these calls.
    other: Option<Token>,
    role: &'static str,
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let (role, metadata) = (self.role, request.metadata());
        let has = |token: &Option<Token>| token.as_ref().is_some_and(|token| token.authorizes(metadata));
        if self.wanted.is_none() || has(&self.wanted) {
            return Ok(request);
        }
        let caller = request.remote_addr().map(|address| address.to_string()).unwrap_or_default();
        let refusal = if has(&self.other) {
            Status::permission_denied(format!("this token is not for {role}s; give the {role}'s"))
        } else {
            Status::unauthenticated(format!("the {role}'s token is missing or wrong"))
        };
        debug!(caller, reason = refusal.message(), "call refused");
        Err(refusal)
    }
}
