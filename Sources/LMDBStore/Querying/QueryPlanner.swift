import PageCodec
import StoreInterface
import StoreModel

/// A planner that looks for the sources of candidates in a condition and estimates each of them.
struct QueryPlanner {
    let entity: EntityIndex
    let snapshot: LMDBSnapshot
    /// The parts of the top-level `and`, flattened.
    let parts: [StorePredicate]
    private let bounds: ColumnBounds

    init(_ predicate: StorePredicate, entity: EntityIndex, snapshot: LMDBSnapshot) {
        self.entity = entity
        self.snapshot = snapshot
        parts = Self.flattened(predicate)
        bounds = ColumnBounds(parts)
    }

    private static func flattened(_ predicate: StorePredicate) -> [StorePredicate] {
        guard case .and(let parts) = predicate.form else { return predicate == .constant(true) ? [] : [predicate] }
        // The usual case, without copying.
        let isFlat = parts.allSatisfy { if case .compare = $0.form { true } else { false } }
        return isFlat ? parts : parts.flatMap(flattened)
    }

    /// Returns the cheapest source, or an intersection if it pays. Returns nil if no source narrows the condition.
    func best() throws -> QuerySource? {
        let found = try sources().sorted { ($0.estimate, $0.isExact ? 0 : 1) < ($1.estimate, $1.isExact ? 0 : 1) }
        guard var best = found.first else { return nil }
        if found.count > 1, best.estimate > 16 { try intersect(&best, with: found.dropFirst()) }
        best.isExact = best.isExact && best.parts.count == parts.count
        return best
    }

    /// Intersects the best source with other sources, if reading them costs less than the pages that they save.
    private func intersect(_ best: inout QuerySource, with others: ArraySlice<QuerySource>) throws {
        var plans = [best.plan]
        let pages = try snapshot.pageCount(entity)
        let objects = max(1, pages * PageAddress.slots)
        for other in others where !other.parts.isSubset(of: best.parts) && best.estimate > 16 {
            let both = Int(Double(best.estimate) * Double(other.estimate) / Double(objects))
            let completes = best.isExact && other.isExact && best.parts.union(other.parts).count == parts.count
            // The unit is the cost of an index entry. A page costs about eight, unless it need not be read any more.
            let saved = completes ? min(best.estimate, pages) : min(best.estimate, pages) - min(both, pages)
            guard other.estimate <= 8 * saved else { continue }
            plans.append(other.plan)
            best.estimate = both
            best.isExact = best.isExact && other.isExact
            best.parts.formUnion(other.parts)
        }
        if plans.count > 1 { best.plan = .all(plans) }
    }

    private func sources() throws -> [QuerySource] {
        var sources: [QuerySource] = []
        for index in snapshot.store.tables.indexes[entity] where snapshot.isReady(index) {
            guard var found = access(index), !found.parts.isEmpty else { continue }
            let estimate = try snapshot.estimate(&found.access)
            sources.append(
                QuerySource(plan: .index(found.access), estimate: estimate, isExact: found.isExact, parts: found.parts))
        }
        for (position, part) in parts.enumerated() {
            guard var source = try source(part) else { continue }
            source.parts = ConjunctSet(position)
            sources.append(source)
        }
        return sources
    }

    /// Returns a source for one part that is not a comparison.
    private func source(_ part: StorePredicate) throws -> QuerySource? {
        switch part.form {
        case .constant(false): return QuerySource(plan: .keys([]), estimate: 0, isExact: true)
        case .keys(let keys): return QuerySource(plan: .keys(keys), estimate: keys.count, isExact: false)
        case .or(let branches):
            var sources: [QuerySource] = []
            for branch in branches {
                guard let source = try QueryPlanner(branch, entity: entity, snapshot: snapshot).best() else { return nil }
                sources.append(source)
            }
            return QuerySource(
                plan: .any(sources.map(\.plan)), estimate: sources.reduce(0) { $0 + $1.estimate },
                isExact: sources.allSatisfy(\.isExact))
        case .toOne(let column, let condition):
            guard let destination = snapshot.schema.entities[entity].columns[column].destination,
                let index = snapshot.index(entity, column), index.isReference
            else { return nil }
            let targets = max(1, try snapshot.pageCount(destination) * PageAddress.slots)
            let inner = try estimate(condition, on: destination)
            let entries = try snapshot.entryCount(index)
            let estimate = Double(entries) * Double(min(inner, targets)) / Double(targets)
            return QuerySource(
                plan: .referrers(index, entity: destination, condition), estimate: Int(estimate), isExact: true)
        case .toMany(let relation, .any, let condition):
            // Several related objects may share one object, so their number is an upper bound.
            return QuerySource(
                plan: .related(relation, condition), estimate: try estimate(condition, on: relation.entity), isExact: true)
        default: return nil
        }
    }

    /// Returns an estimate of the number of another entity's objects that satisfy a condition; a tenth if no index answers
    /// it.
    private func estimate(_ condition: StorePredicate, on entity: EntityIndex) throws -> Int {
        if let found = try QueryPlanner(condition, entity: entity, snapshot: snapshot).best() { return found.estimate }
        return try snapshot.pageCount(entity) * PageAddress.slots / 10
    }

    // MARK: One index

    struct Access {
        var access: IndexAccess
        var isExact: Bool
        var parts = ConjunctSet()
        /// The number of the index's first columns with an equality.
        var equalities = 0
    }

    /// Returns the way in which the condition uses an index: equality of its first columns, then a set, a range or a prefix
    /// of the next column. Without any of these, it is the whole index, for its order. Returns nil if the index cannot
    /// contain such keys.
    func access(_ index: Tables.Index) -> Access? {
        if index.isReference { return references(index) }
        let schema = index.columns.map { snapshot.schema.entities[entity].columns[$0] }
        var key: [UInt8] = []
        var found = Access(access: IndexAccess(index: index, accessKind: .whole), isExact: true)
        while found.equalities < index.columns.count, let equal = bounds.equality(of: index.columns[found.equalities]) {
            let column = schema[found.equalities]
            if case .double(let number) = equal.value, number.isNaN { break }
            guard append(equal.value, column: column, to: &key, in: index) else { break }
            found.equalities += 1
            found.parts.insert(equal.part)
            if column.type == .float { found.isExact = false }
        }
        if found.equalities > 0 { found.access.accessKind = .equality }
        if found.equalities == index.columns.count {
            found.access.ranges = [IndexRange(lower: key, upper: key, reach: .whole)]
        } else {
            let column = index.columns[found.equalities]
            add(bounds.range(of: column), schema[found.equalities], after: key, to: &found)
        }
        // A bound of the maximum key length may have been cut.
        let longest = found.access.ranges.reduce(0) { max($0, $1.lower.count, $1.upper.count) }
        if longest >= KeyCodec.maximumCount {
            found.isExact = false
            for number in found.access.ranges.indices { found.access.ranges[number].widen(to: KeyCodec.maximumCount) }
        }
        return found
    }

    private func references(_ index: Tables.Index) -> Access? {
        let values: [Value]
        var access = Access(access: IndexAccess(index: index, accessKind: .equality), isExact: true)
        if let equal = bounds.equality(of: index.column) {
            values = [equal.value]
            access.parts.insert(equal.part)
        } else if let members = bounds.range(of: index.column)?.members {
            values = members.values.filter { if case .reference = $0 { true } else { $0.isNull } }
            access.parts.insert(members.part)
            access.access.accessKind = .membership(values.count)
        } else {
            return nil
        }
        for value in values {
            // Nulls have no entries.
            guard let key = value.referenceKey else { return nil }
            access.access.destinations.insert(key)
        }
        return access
    }

    /// Appends the value of a column to a key. Returns false if the column cannot store such a value.
    private func append(_ value: Value, column: ColumnSchema, to key: inout [UInt8], in index: Tables.Index) -> Bool {
        var longer = key
        longer.reserveCapacity(64)
        do {
            if index.isCompound {
                _ = try KeyCodec.append([value], columns: [column], to: &longer)
            } else {
                _ = try KeyCodec.append(value, column: column, to: &longer)
            }
        } catch {
            return false
        }
        longer.removeLast(max(0, longer.count - KeyCodec.maximumCount))
        key = longer
        return true
    }

    /// Narrows the column after the equalities.
    private func add(_ range: ColumnBounds.Range?, _ column: ColumnSchema, after key: [UInt8], to found: inout Access) {
        let index = found.access.index
        if let members = range?.members, members.values.count <= 4096 {
            var ranges: [IndexRange] = []
            for value in members.values {
                // Values that the column cannot store do not occur in it, and NaN equals nothing.
                if case .double(let number) = value, number.isNaN { continue }
                var longer = key
                guard append(value, column: column, to: &longer, in: index) else { continue }
                let isWhole = found.equalities + 1 == index.columns.count
                ranges.append(IndexRange(lower: longer, upper: longer, reach: isWhole ? .whole : .leading))
            }
            ranges.sort { IndexBytes.order($0.lower, $1.lower) < 0 }
            // Numbers that narrow to the same float would be read twice.
            guard column.type != .float else { return whole(after: key, &found) }
            found.access.ranges = ranges
            found.access.accessKind = .membership(members.values.count)
            found.parts.insert(members.part)
        } else if let prefix = range?.prefix, column.type == .string {
            var longer = key
            if index.isCompound {
                KeyCodec.appendPrefix(prefix.text, to: &longer)
            } else {
                longer += [1] + Array(prefix.text.utf8)
            }
            found.access.ranges = [IndexRange(beginningWith: Array(longer.prefix(KeyCodec.maximumCount)))]
            found.access.accessKind = .prefix
            found.parts.insert(prefix.part)
        } else if let range, !range.limits.isEmpty {
            add(range.limits, column, after: key, to: &found)
        } else {
            whole(after: key, &found)
        }
    }

    private func whole(after key: [UInt8], _ found: inout Access) {
        found.access.ranges = [IndexRange(beginningWith: key)]
    }

    /// Narrows a column by all of its limits. Comparisons with null are false, so the range begins after null.
    private func add(_ limits: [ColumnBounds.Limit], _ column: ColumnSchema, after key: [UInt8], to found: inout Access) {
        let index = found.access.index
        let isWhole = found.equalities + 1 == index.columns.count && !index.isCompound
        let first = key + [1]
        var range = IndexRange(lower: first, upper: first, reach: .leading)
        var hasLower = false
        var hasUpper = false
        var parts = ConjunctSet()
        for limit in limits {
            if case .double(let number) = limit.value, number.isNaN { continue }
            var longer = key
            guard !limit.value.isNull, append(limit.value, column: column, to: &longer, in: index) else { continue }
            parts.insert(limit.part)
            let isStrict = limit.comparison == .less || limit.comparison == .greater
            switch limit.comparison {
            case .less, .lessOrEqual:
                let order = hasUpper ? IndexBytes.order(longer, range.upper) : -1
                if order < 0 { (range.upper, range.includesUpper) = (longer, !isStrict) }
                if order == 0, isStrict { range.includesUpper = false }
                hasUpper = true
            default:
                let order = hasLower ? IndexBytes.order(longer, range.lower) : 1
                if order > 0 { (range.lower, range.includesLower) = (longer, !isStrict) }
                if order == 0, isStrict { range.includesLower = false }
                hasLower = true
            }
        }
        guard hasLower || hasUpper else { return whole(after: key, &found) }
        if !hasUpper { setOpenUpper(&range, column: column, key: key, index: index) }
        // With a bound of a whole string, only that string is at the bound. With a missing bound, all keys that begin so are
        // at the bound.
        if isWhole { range.lowerReach = .whole }
        if isWhole, hasUpper || column.type.isDouble { range.upperReach = .whole }
        if column.type == .float {
            (range.includesLower, range.includesUpper) = (true, true)
            found.isExact = false
        }
        found.access.ranges = [range]
        found.access.accessKind = .range
        found.parts.formUnion(parts)
    }

    /// Excludes NaN, which is last in an index and is not greater than anything.
    private func setOpenUpper(
        _ range: inout IndexRange, column: ColumnSchema, key: [UInt8], index: Tables.Index
    ) {
        guard column.type.isDouble else { return }
        var longer = key
        if append(.double(.infinity), column: column, to: &longer, in: index) { range.upper = longer }
    }
}

extension ColumnType {
    /// Whether the values are stored as doubles, and may therefore include NaN.
    fileprivate var isDouble: Bool { self == .double || self == .date }
}
