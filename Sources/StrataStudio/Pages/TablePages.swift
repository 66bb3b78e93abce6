import NIOHTTP1
import ObjectGraph
import StoreInterface
import StoreModel

/// Tables of an entity's objects. All pages of a view show one state, which is kept between the requests.
struct TablePages: Sendable {
    struct Column: Encodable, Sendable {
        var name: String
        var type: String
        /// The entity to which a to-one relationship leads.
        var destination: String?
        var isNumber: Bool
    }

    struct Row: Encodable, Sendable {
        var key: String
        var cells: [Cell]
    }

    struct Page: Encodable, Sendable {
        var entity: String
        /// The name of the view, with which further pages of it are asked for.
        var view: String
        /// The newest save that the state contains.
        var save: Generation
        var total: Int
        var offset: Int
        var limit: Int
        var columns: [Column]
        var rows: [Row]
        var plan: String
    }

    struct Plan: Encodable, Sendable { var plan: String }

    /// The greatest number of rows of one page.
    static let maximumRows = 500
    /// The greatest number of characters of a value in a table.
    private static let shownCharacters = 120

    /// The states of open views.
    let kept: KeptValues<Snapshot>
    private let store: StudioStore

    init(_ store: StudioStore) {
        self.store = store
        kept = KeptValues(limit: 8, idleTime: store.options.idleTime)
    }

    func page(_ query: [String: String]) async throws -> Page {
        let entity = try store.entity(query["entity"])
        let condition = try store.condition(query["filter"], entity)
        let sort = try store.sort(query["sort"])
        let limit = min(max(query["limit"].flatMap(Int.init) ?? 50, 1), Self.maximumRows)
        let offset = max(query["offset"].flatMap(Int.init) ?? 0, 0)
        let (view, snapshot) = try view(query["view"], entity)
        let columns = store.columns(of: entity)
        let labels = labels(of: columns)
        let values = EntityValueRequest(
            entity.name,
            fetching: [ResultColumn.objectID.named("$key")] + columns.map { .property($0.name) }
                + labels.map { .property($0.path) },
            matching: condition, sortBy: sort, limit: limit, offset: offset)
        let objects = EntityFetchRequest(entity.name, matching: condition, sortBy: sort, limit: limit, offset: offset)
        let store = store
        let (total, plan, rows) = try await store.read(snapshot) { context in
            let total = try context.count(EntityFetchRequest(entity.name, matching: condition))
            let rows = try context.fetch(values).map { row -> Row in
                var cells = zip(columns, row.values.dropFirst()).map { column, value in
                    store.cell(value, column.type, limit: Self.shownCharacters)
                }
                for (label, value) in zip(labels, row.values.dropFirst(1 + columns.count)) {
                    cells[label.column].label = store.cell(value, .string, limit: Self.shownCharacters).text
                }
                return Row(key: "\(row.values[0].referenceKey ?? 0)", cells: cells)
            }
            return (total, try context.explain(objects), rows)
        }
        return Page(
            entity: entity.name, view: view, save: snapshot.generation, total: total, offset: offset, limit: limit,
            columns: columns.map { column($0) }, rows: rows, plan: plan)
    }

    /// The plan of a query, as `strata query --explain` prints it.
    func plan(_ query: [String: String]) async throws -> Plan {
        let entity = try store.entity(query["entity"])
        let request = EntityFetchRequest(
            entity.name, matching: try store.condition(query["filter"], entity), sortBy: try store.sort(query["sort"]),
            limit: query["limit"].flatMap(Int.init).map { max($0, 0) })
        return Plan(plan: try await store.read { try $0.explain(request) })
    }

    private func column(_ column: ColumnSchema) -> Column {
        Column(
            name: column.name, type: column.typeText(in: store.model),
            destination: column.destination.map { store.model.entities[$0].name },
            isNumber: ![.string, .data, .uuid, .date, .bool, .reference].contains(column.type))
    }

    /// Returns the state of a view, or begins a view on the newest state.
    private func view(_ name: String?, _ entity: Entity) throws -> (String, Snapshot) {
        guard let name else {
            let snapshot = try store.coordinator.snapshot(owner: "studio: table \(entity.name)")
            return (kept.add(snapshot), snapshot)
        }
        guard let snapshot = kept[name] else {
            throw PageError(
                .gone,
                "the state of this table was released, because it was not used for a while, or too many others were opened. Refresh the table"
            )
        }
        return (name, snapshot)
    }

    /// The paths to the texts that stand for the objects of to-one relationships.
    private func labels(of columns: [ColumnSchema]) -> [(column: Int, path: String)] {
        columns.enumerated().compactMap { number, column in
            column.destination.flatMap { store.entity(numbered: $0) }.flatMap { store.label(of: $0) }
                .map { (number, "\(column.name).\($0)") }
        }
    }
}
