//! Callers of a server, with limits of each kind, and prices.

use anyhow::Result;
use everturn_orchestrator::{Builder, Caller, Orchestrator, Price, Scope, Terms};
use everturn_transport_http::{Callers, KnownCaller, TokenHash};
use everturn_wire::CallerName;

/// Number of callers that the load is divided among.
const CALLERS: usize = 8;
/// Limits that nothing reaches.
const MUCH: Option<u64> = Some(1 << 40);

/// Returns the token of a client. A server without callers does not look at it.
pub(crate) fn token(client: usize) -> String {
    format!("token-{}", client % CALLERS)
}

fn known(n: usize) -> Result<KnownCaller> {
    Ok(KnownCaller {
        name: CallerName::parse(&format!("caller-{}", n % CALLERS))?,
        scopes: vec![Scope::Chat, Scope::Calls],
        token: Some(TokenHash::of(token(n).as_bytes())),
        until: None,
        terms: Terms {
            requests_per_minute: MUCH,
            tokens_per_minute: MUCH,
            tokens_per_day: MUCH,
            parallel: MUCH,
            money_per_day: MUCH,
            ..Terms::default()
        },
        models: vec!["*".to_owned()],
    })
}

/// Returns who a client is.
pub(crate) fn caller(n: usize) -> Result<Caller> {
    let KnownCaller { name, scopes, .. } = known(n)?;
    Ok(Caller::new(name, scopes))
}

/// Builds an orchestrator that limits them, and saves what they use.
pub(crate) async fn limiting(builder: Builder) -> Result<(Orchestrator, Callers)> {
    let price = Price { input: 1.0, output: 10.0, ..Price::default() };
    let orchestrator = builder.price("*", price).build();
    let all = (0..CALLERS).map(known).collect::<Result<Vec<_>>>()?;
    orchestrator.limit_callers(all.iter().map(|known| (known.name.clone(), known.terms)).collect());
    orchestrator.allow_models(all.iter().map(|known| (known.name.clone(), known.models.clone())).collect());
    orchestrator.resume().await?;
    let callers = Callers::default();
    callers.replace(all);
    Ok((orchestrator, callers))
}
