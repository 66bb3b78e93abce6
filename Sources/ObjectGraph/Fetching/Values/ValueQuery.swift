import StoreInterface
import StoreModel

/// A value request with the positions of columns, checked before any row is read.
struct ValueQuery: Sendable {
    /// A column at the end of a path of to-one relationships.
    struct Path: Sendable, Hashable {
        /// The reference columns, each with the entity to which it leads.
        var steps: [Step] = []
        var column: ColumnIndex
        /// The entity to which the column belongs.
        var entity: EntityIndex

        struct Step: Sendable, Hashable {
            var column: ColumnIndex
            var entity: EntityIndex
        }

        /// The first column of the path, which belongs to the fetched entity.
        var firstColumn: ColumnIndex { steps.first?.column ?? column }
    }

    enum Source: Sendable {
        case value(Path)
        case objectID
        /// The position among the aggregates.
        case aggregate(Int)
    }

    struct Column: Sendable {
        var name: String
        var source: Source
    }

    /// The query for ungrouped rows, with sort, limit and offset. For groups, only its entity and predicate are used.
    var objects: StoreQuery
    var columns: [Column] = []
    var aggregates: [StoreAggregate] = []
    var groupBy: [Path] = []
    let isGrouped: Bool
    /// The condition on columns of the result, with numbers as bytes where they are compared with decimals.
    private(set) var having = Condition.always
    let request: EntityValueRequest
    private let model: Model

    init(_ request: EntityValueRequest, also predicate: StorePredicate? = nil, in scope: RequestScope) throws {
        model = scope.model
        guard let entity = model.entity(named: request.entityName) else {
            throw FetchError.unknownEntity(request.entityName)
        }
        self.request = request
        let condition = try request.condition.storePredicate(on: entity, in: scope)
        let parts = [predicate, condition, entity.selection].compactMap(\.self)
        objects = StoreQuery(
            entity: entity.number, predicate: .all(parts),
            offset: max(0, request.offset), limit: request.limit.map { max(0, $0) })
        // Rows with the ids of objects are distinct without groups, and a group has several ids.
        let groupsEqualRows =
            request.returnsDistinctResults && !request.propertiesToFetch.contains { $0.source == .objectID }
        isGrouped =
            groupsEqualRows || !request.propertiesToGroupBy.isEmpty
            || request.propertiesToFetch.contains { $0.source.isComputed }
        for column in request.propertiesToFetch { columns.append(try resolve(column, entity)) }
        groupBy = try groupPaths(entity)
        try checkGroups(entity)
        try request.having.checkNames(Set(columns.map(\.name)), request.entityName)
        having = comparable(request.having)
        if isGrouped {
            for sort in request.sortBy where !columns.contains(where: { $0.name == sort.attribute }) {
                throw FetchError.unknownProperty(entity: entity.name, property: sort.attribute)
            }
        } else {
            guard request.having == .always else { throw FetchError.havingWithoutGroups(entity: entity.name) }
            objects.sort = try request.sortBy.map {
                try entity.storeSort(
                    sortName($0.attribute), direction: $0.direction, comparison: $0.comparison, nils: $0.nils, in: scope.model)
            }
        }
    }

    /// The part of the work that a store can do. In place of the aggregates that add up decimals, it counts.
    var aggregation: StoreAggregation {
        StoreAggregation(
            entity: objects.entity, predicate: objects.predicate, groupBy: groupBy.map(\.firstColumn),
            aggregates: aggregates.map { decimals(in: $0) == nil ? $0 : .count })
    }

    /// Returns the column of decimals that an aggregate adds up; nil for other aggregates.
    func decimals(in aggregate: StoreAggregate) -> ColumnIndex? {
        switch aggregate {
        case .sum(let column), .average(let column): isDecimal(column) ? column : nil
        default: nil
        }
    }

    private func isDecimal(_ column: ColumnIndex) -> Bool {
        model.entities[objects.entity].form(of: column, in: model).content == .decimal
    }

    /// Returns a condition on columns of the result with numbers as bytes where they are compared with decimals.
    private func comparable(_ condition: Condition) -> Condition {
        let forms = self.forms
        return condition.replacingConstants { name, constant in
            guard let column = columns.firstIndex(where: { $0.name == name }), forms[column].content == .decimal else {
                return constant
            }
            return constant.asDecimal ?? constant
        }
    }

    /// For each column of ids, the entity to which they belong.
    var idEntities: [EntityIndex?] {
        columns.map { column in
            switch column.source {
            case .objectID: objects.entity
            case .value(let path): model.entities[path.entity].columns[path.column].destination
            case .aggregate(let position):
                aggregates[position].column.flatMap { model.entities[objects.entity].columns[$0].destination }
            }
        }
    }

    /// For each column, the way in which people read its values.
    var forms: [ValueForm] {
        columns.map { column in
            switch column.source {
            case .objectID: ValueForm(type: .reference)
            case .value(let path): model.entities[path.entity].form(of: path.column, in: model)
            case .aggregate(let position):
                switch aggregates[position] {
                case .minimum(let column), .maximum(let column): model.entities[objects.entity].form(of: column, in: model)
                case .sum(let column), .average(let column): ValueForm(content: isDecimal(column) ? .decimal : .plain)
                default: ValueForm()
                }
            }
        }
    }

    // MARK: Resolving names

    private mutating func resolve(_ column: ResultColumn, _ entity: Entity) throws -> Column {
        let aggregate: StoreAggregate
        switch column.source {
        case .property(let path): return Column(name: column.name, source: .value(try self.path(path, entity)))
        case .objectID: return Column(name: column.name, source: .objectID)
        case .count: aggregate = .count
        case .countValues(let name): aggregate = .countValues(try attribute(name, entity: entity, function: "a count"))
        case .minimum(let name): aggregate = .minimum(try attribute(name, entity: entity, function: "a minimum"))
        case .maximum(let name): aggregate = .maximum(try attribute(name, entity: entity, function: "a maximum"))
        case .sum(let name): aggregate = .sum(try number(name, entity: entity, function: "a sum"))
        case .average(let name): aggregate = .average(try number(name, entity: entity, function: "an average"))
        }
        aggregates.append(aggregate)
        return Column(name: column.name, source: .aggregate(aggregates.count - 1))
    }

    private func attribute(_ name: String, entity: Entity, function: String) throws -> ColumnIndex {
        guard let column = entity.column(named: name) else {
            if (try? path(name, entity)) != nil {
                throw FetchError.unsupportedAggregate(function: function, entity: entity.name, property: name)
            }
            throw FetchError.unknownProperty(entity: entity.name, property: name)
        }
        return column
    }

    private func number(_ name: String, entity: Entity, function: String) throws -> ColumnIndex {
        let column = try attribute(name, entity: entity, function: function)
        guard entity.columns[column].type.isNumeric || isDecimal(column) else {
            throw FetchError.unsupportedAggregate(function: function, entity: entity.name, property: name)
        }
        return column
    }

    private func path(_ name: String, _ entity: Entity) throws -> Path {
        var entity = entity
        var steps: [Path.Step] = []
        let parts = entity.names(onPath: name, in: model)
        for (position, part) in parts.enumerated() {
            guard let column = entity.column(named: part) else {
                throw FetchError.unknownProperty(entity: entity.name, property: part)
            }
            if position == parts.count - 1 { return Path(steps: steps, column: column, entity: entity.number) }
            guard let destination = entity.columns[column].destination else {
                throw FetchError.unknownProperty(entity: entity.name, property: name)
            }
            steps.append(.init(column: column, entity: destination))
            entity = model.entities[destination]
        }
        throw FetchError.unknownProperty(entity: entity.name, property: name)
    }

    private func groupPaths(_ entity: Entity) throws -> [Path] {
        guard isGrouped else { return [] }
        if !request.propertiesToGroupBy.isEmpty { return try request.propertiesToGroupBy.map { try path($0, entity) } }
        guard aggregates.isEmpty else { return [] }
        // Distinct rows are groups by all of their columns.
        return columns.compactMap { if case .value(let path) = $0.source { path } else { nil } }
    }

    private func checkGroups(_ entity: Entity) throws {
        guard isGrouped else { return }
        for column in columns {
            switch column.source {
            case .value(let path) where groupBy.contains(path): break
            case .value, .objectID:
                throw FetchError.notGrouped(entity: entity.name, property: column.name)
            case .aggregate: break
            }
        }
    }

    /// Returns the property of a column with this name, so that a column's name can be used for sorting.
    private func sortName(_ name: String) -> String {
        for column in request.propertiesToFetch where column.name == name {
            if case .property(let path) = column.source { return path }
        }
        return name
    }
}

extension ResultColumn.Source {
    /// Whether the column is computed from a group.
    var isComputed: Bool {
        switch self {
        case .property, .objectID: false
        default: true
        }
    }
}
