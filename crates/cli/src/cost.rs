//! What requests cost: what was recorded, or else what the tokens cost by the prices that are known.

use foldline_llm_client::Catalogue;
use foldline_session_model::message::AssistantMessage;
use foldline_session_model::model_call::{CacheHint, ModelRef, Usage};

/// No request costs more dollars than this: a larger number in a file is a mistake.
const MOST: f64 = 1e9;

/// The cost of one answer in US dollars; `None` if nobody knows. Other agents' files record tokens but no cost, and 0
/// is recorded where the price was not known.
pub(crate) fn of(message: &AssistantMessage<'_>, usage: &Usage) -> Option<f64> {
    let plausible = |cost: f64| (cost > 0.0 && cost <= MOST).then_some(cost);
    if usage.is_zero() {
        return Some(plausible(usage.cost.total).unwrap_or(0.0));
    }
    plausible(usage.cost.total).or_else(|| {
        let name = ModelRef {
            provider: message.provider.to_string(),
            id: message.model.to_string(),
        };
        let prices = Catalogue::built_in().profile(&name, None)?.prices?;
        plausible(usage.priced(&prices, CacheHint::Off).cost.total)
    })
}

/// Adds what is known.
pub(crate) fn add(sum: &mut Option<f64>, cost: Option<f64>) {
    if let Some(cost) = cost {
        *sum = Some((sum.unwrap_or(0.0) + cost).min(f64::MAX));
    }
}

/// The sum as people read it.
pub(crate) fn dollars(sum: Option<f64>) -> String {
    sum.map_or_else(|| "price unknown".to_owned(), |sum| format!("${sum:.2}"))
}
