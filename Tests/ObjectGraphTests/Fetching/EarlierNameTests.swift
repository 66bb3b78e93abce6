import ObjectGraph
import StoreInterface
import StoreModel
import Testing

/// The deprecated spelling without labels means the same as the spelling with labels.
@Suite struct EarlierNameTests {
    @Test func `conditions and sorts without labels are those with labels`() {
        let names: any EarlierNames.Type = Names.self
        #expect(
            names.conditions == [
                .compare("a", .less, to: 1), .between("a", 1, and: 2),
                .string("a", .contains, pattern: "b", sensitivity: .insensitive), .related("a", .any, where: .isNil("b")),
                .relatedCount("a", where: .isNil("b"), .less, to: 3),
            ])
        #expect(
            names.predicates == [
                .compare(0, .less, to: 1), .compareColumns(0, .less, to: 1),
                .string(0, .contains, pattern: "b", sensitivity: .insensitive),
            ])
        #expect(names.sorts == [.init(\.singer, by: \.name), .init(\.singer, by: \.name, comparing: .localizedStandard)])
    }
}

/// Calls through a protocol give no warnings.
private protocol EarlierNames {
    static var conditions: [Condition] { get }
    static var predicates: [StorePredicate] { get }
    static var sorts: [SortBy<Song>] { get }
}

private enum Names: EarlierNames {
    @available(*, deprecated) static var conditions: [Condition] {
        [
            .compare("a", .less, 1), .between("a", 1, 2), .string("a", .contains, "b", .insensitive),
            .related("a", .any, .isNil("b")), .relatedCount("a", .isNil("b"), .less, 3),
        ]
    }

    @available(*, deprecated) static var sorts: [SortBy<Song>] {
        [.init(\.singer, \.name), .init(\.singer, \.name, comparing: .localizedStandard)]
    }

    @available(*, deprecated) static var predicates: [StorePredicate] {
        [.compare(0, .less, 1), .compareColumns(0, .less, 1), .string(0, .contains, "b", .insensitive)]
    }
}
