use super::{BadParameter, DEFAULT_QUERY, ParameterLayer, Parameters, Share};

#[test]
fn a_share_lies_between_nothing_and_all() {
    for (value, ok) in [
        (0.0, false),
        (1.0, false),
        (-0.5, false),
        (f64::NAN, false),
        (0.01, true),
        (0.99, true),
    ] {
        assert_eq!(Share::new(value).is_some(), ok, "{value}");
    }
    let half = Share::new(0.5).unwrap();
    for (count, share) in [(0, 0), (1, 1), (20, 10), (21, 11)] {
        assert_eq!(half.of(count), share, "{count}");
    }
}

#[test]
fn layers_lie_over_the_defaults() {
    let layer = |ratio, recent, query: Option<&str>| ParameterLayer {
        ratio,
        preserve_recent: recent,
        query: query.map(str::to_owned),
        budget: None,
    };
    let table = [
        (vec![], None, (0.5, 2, DEFAULT_QUERY)),
        (vec![], Some("  fix it "), (0.5, 2, "fix it")),
        (vec![], Some("  "), (0.5, 2, DEFAULT_QUERY)),
        (
            vec![layer(Some(0.3), Some(4.0), Some(" q "))],
            Some("u"),
            (0.3, 4, "q"),
        ),
        (
            vec![layer(Some(0.3), Some(4.0), None), layer(Some(0.7), None, None)],
            None,
            (0.7, 4, DEFAULT_QUERY),
        ),
        (
            vec![layer(None, Some(-3.0), Some("  "))],
            Some("u"),
            (0.5, 0, "u"),
        ),
        (vec![layer(None, Some(1.9), None)], None, (0.5, 1, DEFAULT_QUERY)),
    ];
    for (layers, user, (ratio, recent, query)) in table {
        let (merged, bad) = Parameters::merge(&layers, user);
        assert!(bad.is_empty());
        assert_eq!(
            (merged.ratio.get(), merged.preserve_recent, &*merged.query),
            (ratio, recent, query),
            "{layers:?}"
        );
    }
}

/// Spec "Verbatim", section 20, 10: a bad option must not wipe a good setting.
#[test]
fn a_bad_value_falls_back_to_the_configured_one_and_says_so() {
    let configured = ParameterLayer {
        ratio: Some(0.3),
        preserve_recent: Some(5.0),
        ..ParameterLayer::default()
    };
    let option = ParameterLayer {
        ratio: Some(1.5),
        preserve_recent: Some(f64::INFINITY),
        budget: Some(0.0),
        ..ParameterLayer::default()
    };
    let (merged, bad) = Parameters::merge(&[configured, option], None);
    assert_eq!(
        (merged.ratio.get(), merged.preserve_recent, merged.budget),
        (0.3, 5, None)
    );
    assert_eq!(
        bad.iter().map(|b| b.name).collect::<Vec<_>>(),
        ["compression_ratio", "preserve_recent", "budget"]
    );
    let text = BadParameter {
        name: "compression_ratio",
        value: 1.5,
    }
    .to_string();
    assert_eq!(
        text,
        "compression_ratio 1.5 is not taken: it must be above 0 and below 1"
    );
}
