use super::*;

fn spec(name: &str) -> ColumnSpec {
    ColumnSpec::new("ks", "t", name, CqlType::INT)
}

#[test]
fn equal_specifications_are_kept_once() {
    let mut markers = Markers::new(vec![None; 9_001]);
    for index in 0..9_000 {
        markers.set(index, spec(["a", "b"][index % 2]));
    }
    markers.set(9_000, spec("c"));
    markers.finish();
    assert_eq!((markers.len(), markers.specs.len()), (9_001, 3));
    let names: Vec<String> = markers.iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names[..3], ["a", "b", "a"]);
    assert_eq!(names[9_000], "c");
}

#[test]
fn named_markers_keep_their_names() {
    let mut markers = Markers::new(vec![Some("x".to_owned()), None, Some("y".to_owned())]);
    (0..3).for_each(|index| markers.set(index, spec("v")));
    markers.finish();
    let names: Vec<&str> = markers.iter().map(|spec| &*spec.name).collect();
    assert_eq!(names, ["x", "v", "y"]);
}
