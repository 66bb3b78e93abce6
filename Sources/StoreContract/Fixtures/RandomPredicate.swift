import StoreInterface
import StoreModel

/// Random conditions on items.
enum RandomPredicate {
    private static let comparisons: [StorePredicate.Comparison] = [
        .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual,
    ]

    /// - Parameter shape: The outermost case, so that a run covers each.
    static func make(depth: Int, shape: Int? = nil, _ random: inout SeededRandom) -> StorePredicate {
        let shape = shape.map { $0 % 14 } ?? Int.random(in: 0..<(depth > 0 ? 14 : 6), using: &random)
        func deeper(_ random: inout SeededRandom) -> StorePredicate { make(depth: max(0, depth - 1), &random) }
        switch shape {
        case 0, 1: return compare(&random)
        case 2: return columns(&random)
        case 3: return isIn(&random)
        case 4: return string(random.pick([Sample.name, Sample.note]), patterns: Population.names, using: &random)
        case 5: return .keys(Set((0..<20).map { _ in ObjectKey.random(in: 60..<200, using: &random) }))
        case 6: return .and((0..<Int.random(in: 0...3, using: &random)).map { _ in deeper(&random) })
        case 7: return .or((0..<Int.random(in: 0...3, using: &random)).map { _ in deeper(&random) })
        case 8, 9: return .not(deeper(&random))
        case 10: return .toOne(Sample.parent, deeper(&random))
        case 11: return .toOne(Sample.owned, string(0, patterns: Population.names, using: &random))
        case 12:
            let quantifier = random.pick([StorePredicate.Quantifier.any, .all, .none])
            if random.chance(50) {
                return .toMany(RelationChecks.tags, quantifier, where: string(0, patterns: ["a", "0", "1"], using: &random))
            }
            return .toMany(.referrers(entity: Sample.item, column: Sample.parent), quantifier, where: deeper(&random))
        default:
            let comparison = random.pick(comparisons)
            let number = Int.random(in: 0...3, using: &random)
            if random.chance(50) {
                return .toManyCount(RelationChecks.tags, where: .constant(random.chance(80)), comparison, to: number)
            }
            return .toManyCount(
                .referrers(entity: Sample.item, column: Sample.parent), where: deeper(&random), comparison, to: number)
        }
    }

    private static func value(_ column: ColumnIndex, _ random: inout SeededRandom) -> Value {
        if random.chance(10) { return .null }
        return Population.value(column, items: 64..<184, owners: 64..<80, &random)
    }

    private static func compare(_ random: inout SeededRandom) -> StorePredicate {
        let column = ColumnIndex(rawValue: Int.random(in: 0...8, using: &random))
        // Numbers of one class are sometimes compared with columns of another class.
        let numeric = [Sample.number, Sample.ratio, Sample.second, Sample.unsigned]
        let source = numeric.contains(column) && random.chance(30) ? random.pick(numeric) : column
        return .compare(column, random.pick(comparisons), to: value(source, &random))
    }

    private static func columns(_ random: inout SeededRandom) -> StorePredicate {
        let pairs = [
            (Sample.number, Sample.second), (Sample.name, Sample.note), (Sample.ratio, Sample.ratio),
            (Sample.ratio, Sample.number),
            (Sample.unsigned, Sample.unsigned), (Sample.unsigned, Sample.number), (Sample.parent, Sample.parent),
        ]
        let pair = random.pick(pairs)
        return .compareColumns(pair.0, random.pick(comparisons), to: pair.1)
    }

    private static func isIn(_ random: inout SeededRandom) -> StorePredicate {
        let column = ColumnIndex(rawValue: Int.random(in: 0...8, using: &random))
        let count = Int.random(in: 0...4, using: &random)
        return .isIn(column, Set((0..<count).map { _ in value(column, &random) }))
    }

    private static func string(_ column: ColumnIndex, patterns: [String], using random: inout SeededRandom) -> StorePredicate {
        .string(
            column, random.pick([.equals, .contains, .hasPrefix, .hasSuffix]), pattern: random.pick(patterns),
            sensitivity: random.pick([.sensitive, .insensitive]))
    }
}
