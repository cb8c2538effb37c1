//! Charts as inline SVG. Shapes stretch with the page, texts and strokes do not: positions are percentages, and paths
//! live in a stretched picture of their own.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::compactions::Sizes;
use super::numbers::Input;
use super::timeline::{MarkKind, Point, Timeline};
use crate::output::grouped;

/// The side of the stretched picture.
const SIDE: f64 = 1000.0;
/// More points than this are thinned out: no screen shows them.
const MOST_POINTS: usize = 2000;
/// More bars than this are drawn as means.
const MOST_BARS: usize = 90;
/// The widest bar, on the scale of [`SIDE`].
const WIDEST_BAR: f64 = 60.0;
/// Numbers on marks closer than this, in percent of the width, would cover each other.
const FLAG_WIDTH: f64 = 3.0;

/// Ticks of an axis that begins at 0.
struct Axis {
    ticks: Vec<u64>,
    end: f64,
}

impl Axis {
    /// An axis with about this many steps of a round size, up to the first one at or above `largest`.
    fn new(largest: u64, steps: u64) -> Self {
        let step = round_step(largest.max(1).div_ceil(steps));
        let count = largest.max(1).div_ceil(step);
        Self {
            ticks: (0..=count).map(|i| i.saturating_mul(step)).collect(),
            end: count as f64 * step as f64,
        }
    }

    /// An axis that ends with its data.
    fn exact(largest: u64, steps: u64) -> Self {
        let mut axis = Self::new(largest, steps);
        axis.ticks.retain(|tick| *tick <= largest);
        axis.end = largest.max(1) as f64;
        axis
    }

    /// A place on the axis, in percent.
    fn percent(&self, value: u64) -> f64 {
        value as f64 / self.end * 100.0
    }

    fn scaled(&self, value: u64) -> f64 {
        value as f64 / self.end * SIDE
    }
}

/// The smallest of 1, 2, 5, 10, 20, … that is at least this.
fn round_step(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least || step == u64::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A number of tokens in little room.
pub(super) fn short(number: u64) -> String {
    let in_units = |unit: u64, name: &str| {
        let tenths = number / (unit / 10);
        match (tenths / 10, tenths % 10) {
            (whole, 0) => format!("{whole}{name}"),
            (whole, _) if whole >= 100 => format!("{whole}{name}"),
            (whole, tenth) => format!("{whole}.{tenth}{name}"),
        }
    };
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => in_units(1000, "k"),
        _ => in_units(1_000_000, "M"),
    }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

fn from_top(axis: &Axis, value: u64) -> f64 {
    SIDE - axis.scaled(value)
}

/// The size of the context over the messages of the active path.
pub(super) fn context(timeline: &Timeline, window: Option<u64>) -> Markup {
    let largest = timeline
        .points
        .iter()
        .map(|point| point.estimated.max(point.measured.unwrap_or(0)))
        .max()
        .unwrap_or(0);
    // The window is drawn where it leaves the rest readable.
    let window = window.filter(|window| *window <= largest.saturating_mul(2));
    let y = Axis::new(largest.max(window.unwrap_or(0)), 4);
    let x = Axis::exact(timeline.messages as u64, 5);
    let points = thinned(&timeline.points, timeline.messages);
    let (area, line) = steps(&points, &x, &y);
    let measured = dots(&points, &x, &y);
    let mut turns = String::new();
    for turn in &timeline.turns {
        // Writing to a String cannot fail.
        let _ = write!(turns, "M{:.1} {SIDE}v-26", x.scaled(*turn as u64));
    }
    html! {
        div .chart role="img" aria-label=(format!("Size of the context, in tokens, after each of {} messages", grouped(timeline.messages as u64))) {
            svg .flags aria-hidden="true" {
                @for (number, at) in flags(timeline, &x) {
                    a href=(format!("#compaction-{number}")) {
                        circle cx=(percent(at)) cy="10" r="8.5" {}
                        text x=(percent(at)) y="13.6" { (number) }
                    }
                }
            }
            (y_axis(&y))
            svg .plot {
                svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                    path .grid d=(grid(&y)) {}
                    path .area d=(area) {}
                    path .line d=(line) {}
                    path .measured d=(measured) {}
                    path .turns d=(turns) {}
                    @if let Some(window) = window {
                        path .window d=(format!("M0 {:.1}H{SIDE}", from_top(&y, window))) {}
                    }
                    @for mark in &timeline.marks {
                        path class=(mark_class(mark.kind)) d=(format!("M{:.1} 0V{SIDE}", x.scaled(mark.at as u64))) {
                            title { (mark_title(mark.kind)) ": " (grouped(mark.before)) " → " (grouped(mark.after)) " tokens" }
                        }
                    }
                }
                @if let Some(window) = window {
                    text .window x="100%" dx="-4" y=(percent(100.0 - y.percent(window))) dy="-5" { "window " (short(window)) }
                }
            }
            (x_axis(&x))
        }
    }
}

/// The compactions whose numbers have room above the chart, and where.
fn flags(timeline: &Timeline, x: &Axis) -> Vec<(usize, f64)> {
    let mut flags: Vec<(usize, f64)> = Vec::new();
    for mark in &timeline.marks {
        let MarkKind::Compaction(number) = mark.kind else {
            continue;
        };
        let at = x.percent(mark.at as u64);
        if flags.last().is_none_or(|(_, last)| at - last >= FLAG_WIDTH) {
            flags.push((number, at));
        }
    }
    flags
}

fn mark_class(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Compaction(_) => "mark compaction",
        MarkKind::Prune => "mark prune",
        MarkKind::Undo => "mark undo",
    }
}

fn mark_title(kind: MarkKind) -> String {
    match kind {
        MarkKind::Compaction(number) => format!("Compaction {number}"),
        MarkKind::Prune => "Prune".to_owned(),
        MarkKind::Undo => "Taken back".to_owned(),
    }
}

fn y_axis(axis: &Axis) -> Markup {
    html! {
        svg .y-axis aria-hidden="true" {
            @for tick in &axis.ticks {
                text x="100%" dx="-8" y=(percent(100.0 - axis.percent(*tick))) dy="4" { (short(*tick)) }
            }
        }
    }
}

fn x_axis(axis: &Axis) -> Markup {
    html! {
        svg .x-axis aria-hidden="true" {
            @for tick in &axis.ticks {
                @let at = axis.percent(*tick);
                text class=(if at > 96.0 { "end" } else if at < 4.0 { "start" } else { "middle" }) x=(percent(at)) y="15" { (short(*tick)) }
            }
        }
    }
}

fn grid(axis: &Axis) -> String {
    let mut path = String::new();
    for tick in &axis.ticks {
        let _ = write!(path, "M0 {:.1}H{SIDE}", from_top(axis, *tick));
    }
    path
}

/// The area below the sizes, and its upper edge. Between two messages the size stays what it was.
fn steps(points: &[Point], x: &Axis, y: &Axis) -> (String, String) {
    let mut edge = format!("M0 {SIDE}");
    for point in points {
        let at = x.scaled(point.at as u64);
        let _ = write!(edge, "H{at:.1}V{:.1}", from_top(y, point.estimated));
    }
    (format!("{edge}V{SIDE}Z"), edge)
}

/// A stroke without length is a dot where its ends are round.
fn dots(points: &[Point], x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    for point in points {
        if let Some(measured) = point.measured {
            let _ = write!(
                path,
                "M{:.1} {:.1}h0",
                x.scaled(point.at as u64),
                from_top(y, measured)
            );
        }
    }
    path
}

/// Of many points those that can be seen: in each column the first, the last and the extremes.
fn thinned(points: &[Point], messages: usize) -> Vec<Point> {
    if points.len() <= MOST_POINTS {
        return points.to_vec();
    }
    let columns = MOST_POINTS / 4;
    let column = |point: &Point| point.at * columns / messages.max(1);
    let mut kept = Vec::with_capacity(MOST_POINTS + 4);
    for stretch in points.chunk_by(|a, b| column(a) == column(b)) {
        let highest = (0..stretch.len()).max_by_key(|i| stretch.get(*i).map(|p| p.estimated));
        let lowest = (0..stretch.len()).min_by_key(|i| stretch.get(*i).map(|p| p.estimated));
        let mut places = vec![Some(0), highest, lowest, stretch.len().checked_sub(1)];
        places.sort_unstable();
        places.dedup();
        kept.extend(
            places
                .into_iter()
                .flatten()
                .filter_map(|place| stretch.get(place)),
        );
    }
    kept
}

/// The input of requests: from the cache, into the cache, neither.
pub(super) fn requests(inputs: &[Input]) -> Markup {
    let size = inputs.len().div_ceil(MOST_BARS).max(1);
    let bars: Vec<Input> = inputs.chunks(size).map(mean).collect();
    let total = |input: &Input| {
        input
            .cache_read
            .saturating_add(input.cache_write)
            .saturating_add(input.uncached)
    };
    let y = Axis::new(bars.iter().map(total).max().unwrap_or(0), 4);
    let x = Axis::exact(inputs.len() as u64, 5);
    // The last group may be smaller than the others, and is drawn so.
    let width = size as f64 / inputs.len().max(1) as f64 * SIDE;
    html! {
        div .chart .low role="img" aria-label=(format!("Input tokens of {} requests, by use of the cache", grouped(inputs.len() as u64))) {
            (y_axis(&y))
            svg .plot {
                svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" {
                    path .grid d=(grid(&y)) {}
                    @for (at, bar) in bars.iter().enumerate() {
                        @let left = at as f64 * width;
                        @let own = (width.min(SIDE - left) * 0.86).min(WIDEST_BAR);
                        @let read = bar.cache_read;
                        @let written = read.saturating_add(bar.cache_write);
                        @let all = total(bar);
                        g {
                            title { (requests_title(at, size, inputs.len(), bar)) }
                            (bar_part("read", left, own, (0, read), &y))
                            (bar_part("written", left, own, (read, written), &y))
                            (bar_part("uncached", left, own, (written, all), &y))
                        }
                    }
                }
            }
            (x_axis(&x))
        }
        @if size > 1 {
            p .note { "Each bar is the mean of " (size) " requests." }
        }
    }
}

fn requests_title(at: usize, size: usize, count: usize, bar: &Input) -> String {
    let first = at * size + 1;
    let last = (first + size - 1).min(count);
    let which = if first == last {
        format!("Request {first}")
    } else {
        format!("Requests {first} to {last}, mean")
    };
    format!(
        "{which}: {} from the cache, {} written to it, {} neither",
        grouped(bar.cache_read),
        grouped(bar.cache_write),
        grouped(bar.uncached)
    )
}

fn bar_part(class: &'static str, left: f64, width: f64, (from, to): (u64, u64), y: &Axis) -> Markup {
    html! {
        @if to > from {
            rect class=(class) x=(format!("{left:.1}")) y=(format!("{:.1}", from_top(y, to))) width=(format!("{width:.1}")) height=(format!("{:.1}", y.scaled(to) - y.scaled(from))) {}
        }
    }
}

fn mean(inputs: &[Input]) -> Input {
    let count = inputs.len().max(1) as u64;
    let of = |part: fn(&Input) -> u64| inputs.iter().map(part).fold(0, u64::saturating_add) / count;
    Input {
        cache_read: of(|input| input.cache_read),
        cache_write: of(|input| input.cache_write),
        uncached: of(|input| input.uncached),
    }
}

/// A bar with a part of it filled. Both are shares of the same whole.
pub(super) fn share(all: u64, part: u64, whole: u64) -> Markup {
    let width = |tokens: u64| format!("{:.2}", tokens as f64 / whole.max(1) as f64 * 100.0);
    html! {
        svg .share viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect .all width=(width(all)) height="10" {}
            rect .now width=(width(part)) height="10" {}
        }
    }
}

/// Before and after, on one scale.
pub(super) fn before_and_after(sizes: Sizes) -> Markup {
    let whole = sizes.before().max(sizes.after()).max(1) as f64;
    let width = |tokens: u64| format!("{:.2}", tokens as f64 / whole * 100.0);
    let row = |first: (&'static str, u64)| {
        html! {
            svg .size viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
                rect class=(first.0) width=(width(first.1)) height="10" {}
                rect .kept x=(width(first.1)) width=(width(sizes.kept)) height="10" {}
            }
        }
    };
    html! {
        div .sizes {
            span .when { "before" }
            (row(("replaced", sizes.replaced)))
            span .number { (grouped(sizes.before())) }
            span .when { "after" }
            (row(("text", sizes.text)))
            span .number { (grouped(sizes.after())) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps_and_hold_their_data() {
        for (largest, ticks) in [
            (0, vec![0, 1]),
            (3, vec![0, 1, 2, 3]),
            (9, vec![0, 5, 10]),
            (1000, vec![0, 500, 1000]),
            (345_562, vec![0, 100_000, 200_000, 300_000, 400_000]),
        ] {
            let axis = Axis::new(largest, 4);
            assert_eq!(axis.ticks, ticks, "{largest}");
            assert!(axis.end >= largest as f64);
        }
        let axis = Axis::exact(989, 5);
        assert_eq!(axis.ticks, [0, 200, 400, 600, 800]);
        assert!((axis.percent(989) - 100.0).abs() < 1e-9);
        assert_eq!(Axis::new(u64::MAX, 4).ticks.first(), Some(&0));
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1k"),
            (1500, "1.5k"),
            (345_562, "345k"),
            (2_000_000, "2M"),
        ] {
            assert_eq!(short(number), text);
        }
    }

    #[test]
    fn thinning_keeps_ends_and_extremes() {
        let points: Vec<Point> = (1..=50_000)
            .map(|at| Point {
                at,
                estimated: if at == 30_001 { 9_999_999 } else { at as u64 },
                measured: None,
            })
            .collect();
        let kept = thinned(&points, 50_000);
        assert!(kept.len() <= MOST_POINTS + 4, "{}", kept.len());
        assert!(kept.iter().any(|point| point.estimated == 9_999_999));
        assert_eq!((kept[0].at, kept[kept.len() - 1].at), (1, 50_000));
        assert!(kept.is_sorted_by_key(|point| point.at));
    }
}
