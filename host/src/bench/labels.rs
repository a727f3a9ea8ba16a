//! Where labels stand: none over another.

use super::canvas::{Anchor, Area, Point, TEXT, text_area};

/// Moves labels of a `height` apart, as little as they must be, between `top` and `bottom`:
/// their middles, in the order of `wanted`.
pub fn moved_apart(wanted: &[f64], height: f64, (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    // Labels that would overlap become a block, whose middle is where its labels' is.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for &index in &order {
        let mut block = (wanted[index], 1);
        while let Some(&(middle, count)) = blocks.last() {
            let room = height * (count + block.1) as f64 / 2.0;
            if block.0 - middle >= room {
                break;
            }
            let total = (count + block.1) as f64;
            block = (
                (middle * count as f64 + block.0 * block.1 as f64) / total,
                count + block.1,
            );
            blocks.pop();
        }
        blocks.push(block);
    }
    let mut places = vec![0.0; wanted.len()];
    let of_blocks = blocks.iter().flat_map(|&(middle, count)| {
        let first = middle - height * (count as f64 - 1.0) / 2.0;
        (0..count).map(move |index| first + height * index as f64)
    });
    for (&index, place) in order.iter().zip(of_blocks) {
        places[index] = place;
    }
    // Then from the ends inwards.
    let mut least = top + height / 2.0;
    for &index in &order {
        places[index] = places[index].max(least);
        least = places[index] + height;
    }
    let mut most = bottom - height / 2.0;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - height;
    }
    places
}

/// A label and its point.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub point: Point,
    pub text: String,
}

/// Where a label stands: half-way up the text, at its anchor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    pub at: Point,
    pub anchor: Anchor,
}

/// Points closer than this share a column of labels.
const CLOSE: (f64, f64) = (34.0, 44.0);
/// Between the points and their column.
const BESIDE: f64 = 16.0;
/// Between the labels of a column.
const HEIGHT: f64 = TEXT * 1.25;
/// How far columns are moved at most, in steps.
const STEP: f64 = 6.0;
const STEPS: i32 = 50;

/// A place for each label: those of points close to each other in a column beside them, in the
/// order of their heights, so that lines from points to labels do not cross. No label is over
/// another or over an obstacle, or outside `bounds`; `None` where there is no room.
pub fn columns(wanted: &[Wanted], mut obstacles: Vec<Area>, bounds: Area) -> Vec<Option<Placed>> {
    let mut places = vec![None; wanted.len()];
    for mut members in clusters(wanted) {
        // One that nothing fits for has one member less, until the last.
        while !members.is_empty() {
            if let Some(column) = column(wanted, &members, &obstacles, bounds) {
                for (&index, placed) in members.iter().zip(column) {
                    let label = &wanted[index];
                    obstacles.push(text_area(&label.text, placed.at, placed.anchor));
                    places[index] = Some(placed);
                }
                break;
            }
            members.pop();
        }
    }
    places
}

/// The labels in groups of close points, the largest group first.
fn clusters(wanted: &[Wanted]) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for index in 0..wanted.len() {
        let is_close = |other: &usize| {
            let (one, other) = (wanted[index].point, wanted[*other].point);
            (one.0 - other.0).abs() < CLOSE.0 && (one.1 - other.1).abs() < CLOSE.1
        };
        let (near, far): (Vec<_>, Vec<_>) = clusters
            .into_iter()
            .partition(|cluster| cluster.iter().any(is_close));
        let mut joined: Vec<usize> = near.into_iter().flatten().collect();
        joined.push(index);
        clusters = far;
        clusters.push(joined);
    }
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.len()));
    clusters
}

/// A column for these labels: at the right if there is room, or else at the left, and no higher or
/// lower than it must be.
fn column(
    wanted: &[Wanted],
    members: &[usize],
    obstacles: &[Area],
    bounds: Area,
) -> Option<Vec<Placed>> {
    let points = || members.iter().map(|&index| wanted[index].point);
    let heights: Vec<f64> = points().map(|point| point.1).collect();
    let right = points().map(|point| point.0).fold(f64::MIN, f64::max) + BESIDE;
    let left = points().map(|point| point.0).fold(f64::MAX, f64::min) - BESIDE;
    let middles = moved_apart(&heights, HEIGHT, (bounds.top, bounds.bottom));
    let shifts = (0..=STEPS).flat_map(|step| [-step, step]);
    let sides = [(right, Anchor::Start), (left, Anchor::End)];
    let mut candidates = shifts.flat_map(|shift| sides.map(|side| (shift, side)));
    candidates.find_map(|(shift, (x, anchor))| {
        let placed = middles.iter().map(|middle| Placed {
            at: (x, middle + f64::from(shift) * STEP),
            anchor,
        });
        let placed: Vec<Placed> = placed.collect();
        let is_free = placed.iter().zip(members).all(|(placed, &index)| {
            let area = text_area(&wanted[index].text, placed.at, placed.anchor);
            bounds.contains(&area) && !obstacles.iter().any(|other| other.overlaps(&area))
        });
        is_free.then_some(placed)
    })
}

/// Small areas along a line.
pub fn along(from: Point, to: Point) -> Vec<Area> {
    let length = (to.0 - from.0).hypot(to.1 - from.1);
    let count = (length / 4.0).ceil().max(1.0);
    (0..=count as usize)
        .map(|index| {
            let share = index as f64 / count;
            let point = (
                from.0 + share * (to.0 - from.0),
                from.1 + share * (to.1 - from.1),
            );
            Area::around(point, 4.0, 4.0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_no_further_than_they_must() {
        let apart = |wanted: &[f64]| moved_apart(wanted, 10.0, (0.0, 100.0));
        assert_eq!(apart(&[50.0, 20.0]), [50.0, 20.0]);
        assert_eq!(apart(&[50.0, 50.0]), [45.0, 55.0]);
        assert_eq!(apart(&[54.0, 50.0, 20.0]), [57.0, 47.0, 20.0]);
        assert_eq!(apart(&[0.0, 0.0, 99.0]), [5.0, 15.0, 95.0]);
    }

    fn areas(labels: &[Wanted], places: &[Option<Placed>]) -> Vec<Area> {
        let labels = labels.iter().zip(places);
        let placed = labels.filter_map(|(label, place)| Some((label, (*place)?)));
        let areas = placed.map(|(label, place)| text_area(&label.text, place.at, place.anchor));
        areas.collect()
    }

    #[test]
    fn labels_of_points_on_top_of_each_other_are_beside_them_and_apart() {
        let labels: Vec<Wanted> = (0..12)
            .map(|index| Wanted {
                point: (300.0, 200.0 + f64::from(index % 2)),
                text: format!("label-{index}"),
            })
            .collect();
        let point = Area::around((300.0, 200.0), 14.0, 14.0);
        let bounds = Area::around((300.0, 200.0), 600.0, 400.0);
        let places = columns(&labels, vec![point], bounds);
        let areas = areas(&labels, &places);
        assert_eq!(areas.len(), 12);
        for (index, area) in areas.iter().enumerate() {
            assert!(bounds.contains(area) && !area.overlaps(&point));
            assert!(!areas[..index].iter().any(|other| other.overlaps(area)));
        }
    }

    #[test]
    fn labels_without_room_are_left_out() {
        let labels = ["short", "a label wider than all"].map(|text| Wanted {
            point: (50.0, 10.0),
            text: text.into(),
        });
        let bounds = Area::around((50.0, 10.0), 130.0, 30.0);
        let places = columns(&labels, Vec::new(), bounds);
        assert!(places[0].is_some() && places[1].is_none());
    }
}
