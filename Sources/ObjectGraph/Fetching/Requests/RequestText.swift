import StoreInterface
import StoreModel

/// The texts of requests, for logs and messages. Their format may change.
enum RequestText {
    /// Returns the parts of a request: `Track where plays > 3 sorted by title, at most 20`.
    static func request(_ subject: String, where conditions: [String?], sorts: [String], limit: Int?, offset: Int) -> String {
        var text = subject
        let conditions = conditions.compactMap(\.self).filter { $0 != "true" }
        if !conditions.isEmpty { text += " where " + conditions.joined(separator: " && ") }
        if !sorts.isEmpty { text += " sorted by " + sorts.joined(separator: ", ") }
        if let limit { text += ", at most \(limit)" }
        if offset > 0 { text += ", after \(offset)" }
        return text
    }

    static func sort(
        _ name: String, direction: StoreSort.Direction, comparison: StringComparison, nils: NilPosition
    ) -> String {
        let words =
            switch comparison {
            case .caseInsensitive: " ignoring case"
            case .numeric: " by numbers"
            case .localizedStandard: " as people sort"
            default: ""
            }
        let place =
            switch nils {
            case .byDirection: ""
            case .first: " with nil first"
            case .last: " with nil last"
            }
        return name + words + (direction == .descending ? " descending" : "") + place
    }
}

extension FetchRequest: CustomStringConvertible {
    /// The entity, the conditions, the sorts and the limits: `Track where playCount > 100 sorted by title, at most 20`.
    public var description: String {
        RequestText.request(
            M.entityName,
            where: predicates.map { PredicateText.text($0, isPart: condition.isRestrictive || predicates.count > 1) }
                + [condition.description],
            sorts: sortBy.map(\.description), limit: limit, offset: offset)
    }
}

extension EntityFetchRequest: CustomStringConvertible {
    /// The entity, the condition, the sorts and the limits: `Track where playCount > 100 sorted by title, at most 20`.
    public var description: String {
        RequestText.request(
            entityName, where: [condition.description], sorts: sortBy.map(\.description), limit: limit, offset: offset)
    }
}

extension ValueRequest: CustomStringConvertible {
    /// The columns, the entity, the conditions, the groups, the sorts and the limits.
    public var description: String {
        let columns = propertiesToFetch.map(\.description)
        let text = RequestText.request(
            "\(columns.joined(separator: ", ")) of \(M.entityName)",
            where: [predicate.map { PredicateText.text($0, isPart: condition.isRestrictive) }, condition.description],
            sorts: sortBy.map(\.sort.description), limit: limit, offset: offset)
        let groups = propertiesToGroupBy.map(\.description)
        return groups.isEmpty ? text : "\(text), grouped by \(groups.joined(separator: ", "))"
    }
}

extension EntityValueRequest: CustomStringConvertible {
    /// The columns, the entity, the condition, the groups, the sorts and the limits.
    public var description: String {
        let columns = propertiesToFetch.map(\.description)
        let text = RequestText.request(
            "\(columns.joined(separator: ", ")) of \(entityName)", where: [condition.description],
            sorts: sortBy.map(\.description), limit: limit, offset: offset)
        return propertiesToGroupBy.isEmpty ? text : "\(text), grouped by \(propertiesToGroupBy.joined(separator: ", "))"
    }
}

extension ResultColumn: CustomStringConvertible {
    /// The name of the column.
    public var description: String { name }
}

extension ModelColumn: CustomStringConvertible {
    /// The name of the column.
    public var description: String { column.name }
}

extension SortBy: CustomStringConvertible {
    /// The property, the comparison of strings and the direction: `title ignoring case descending`.
    public var description: String {
        RequestText.sort(property ?? keyPathText, direction: direction, comparison: comparison, nils: nils)
    }
}

extension AttributeSort: CustomStringConvertible {
    /// The attribute, the comparison of strings and the direction: `title ignoring case descending`.
    public var description: String {
        RequestText.sort(attribute, direction: direction, comparison: comparison, nils: nils)
    }
}
