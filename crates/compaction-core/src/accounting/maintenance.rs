//! Whether pruning below the threshold pays (spec "Pruning", 11).

use foldline_session_model::Tokens;

use crate::settings::CompactionSettings;

/// What is known before such a prune.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenancePrune {
    /// What it would save.
    pub savings: Tokens,
    /// What the next request loses at the provider's cache: its cached tokens, read and written.
    pub cache_cost: Tokens,
}

/// Whether a prune below the threshold saves enough, and more than it costs at the provider's cache.
pub fn prune_pays(settings: &CompactionSettings, prune: MaintenancePrune) -> bool {
    settings.maintenance_pruning_enabled
        && prune.savings >= settings.maintenance_pruning_min_savings_tokens
        && prune.savings > prune.cache_cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prune_must_save_enough_and_more_than_it_costs() {
        let on = CompactionSettings {
            maintenance_pruning_enabled: true,
            ..CompactionSettings::default()
        };
        let pays = |settings: &CompactionSettings, savings, cache_cost| {
            let (savings, cache_cost) = (Tokens(savings), Tokens(cache_cost));
            prune_pays(settings, MaintenancePrune { savings, cache_cost })
        };
        assert!(!pays(&CompactionSettings::default(), 50_000, 0));
        assert!(!pays(&on, 7_999, 0));
        assert!(pays(&on, 8_000, 7_999));
        assert!(!pays(&on, 8_000, 8_000));
    }
}
