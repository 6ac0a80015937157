use helenus_cql::types::CqlType;

use super::{MASKED_LEN_MAX, masked_value};

#[test]
fn the_default_mask_of_a_type_is_bounded() {
    let len = |ty: &CqlType| masked_value(ty, MASKED_LEN_MAX).map(|masked| masked.len());
    let wide = CqlType::vector(CqlType::FLOAT, 1 << 20);
    assert_eq!(len(&wide), Some(4 << 20));
    assert_eq!(
        len(&CqlType::tuple([wide.clone(), CqlType::INT])),
        Some((4 << 20) + 12)
    );
    for too_long in [
        CqlType::vector(CqlType::FLOAT, i32::MAX as u32),
        CqlType::vector(CqlType::vector(CqlType::FLOAT, i32::MAX as u32), i32::MAX as u32),
        CqlType::vector(CqlType::TEXT, i32::MAX as u32),
        CqlType::vector(wide.clone(), 5),
        CqlType::tuple([wide.clone(), wide.clone(), wide.clone(), wide.clone(), wide]),
    ] {
        assert_eq!(len(&too_long), None, "{too_long}");
    }
}
