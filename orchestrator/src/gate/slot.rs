//! When waiting turns return: one after another, at a rate that doubles each second.

/// Returns after how many milliseconds the n-th turn returns (1 = the first): one after half a second, then two within
/// a second, four within the next, and so on. Ten thousand turns are back after 14 s.
pub(super) fn slot_ms(n: u32) -> u64 {
    let n = n.max(1);
    let bracket = n.ilog2();
    let size = 1_u64 << bracket;
    500 + 1_000 * u64::from(bracket) + 1_000 * (u64::from(n) - size) / size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_doubles() {
        let slots: Vec<u64> = (1..=8).map(slot_ms).collect();
        assert_eq!(slots, [500, 1_500, 2_000, 2_500, 2_750, 3_000, 3_250, 3_500]);
        assert_eq!(slot_ms(10_000), 13_720);
        assert!((1..100_000).all(|n| slot_ms(n) <= slot_ms(n + 1)));
    }
}
