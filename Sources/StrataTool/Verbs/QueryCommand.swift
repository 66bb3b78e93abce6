import ArgumentParser
import ObjectGraph
import StoreInterface
import StoreModel

/// `strata query`: the objects that satisfy a condition, or values computed from them.
struct QueryCommand: StoreVerb {
    static let configuration = CommandConfiguration(
        commandName: "query", abstract: "Lists the objects that satisfy a condition.",
        discussion: """
            Conditions compare properties with values: plays > 100 and (title contains "blue" or artist.name = 'AC/DC').

            =  !=  <  <=  >  >=      a number, a text in quotes, true, false, nil, or a date such as 2013-01-31T10:00:00Z
            in (1, 2)                one of several values
            between 1 and 9          both ends included
            contains, beginswith, endswith    parts of texts; with [c], in any case: title contains[c] "blue"
            like "blue*"             the whole text, where a * at the start or end is any text; also like[c]
            is nil, is not nil       a value is missing
            any tracks (…), all tracks (…), none tracks (…)    conditions on the objects of a to-many relationship
            tracks.count > 3         the number of its objects
            and, or, not, ( )        logic; not binds most strongly, then and

            A path such as album.artist.name follows to-one relationships. A name that is a keyword or has other characters is written in \
            backticks. Names of to-many relationships are those that `strata model` prints.
            """)

    @OptionGroup var query: QueryOptions

    @Flag(help: "Print the number of objects only.")
    var count = false

    @Flag(help: "Print how the store would answer, without the result.")
    var explain = false

    @OptionGroup var output: OutputOptions

    mutating func validate() throws {
        if count, query.aggregate != nil {
            throw ValidationError("--count and --aggregate exclude each other. Write --aggregate count")
        }
    }

    mutating func run() async throws {
        let options = self
        try await OpenedStore.with(query.file) { store in
            let query = try Query(options.query, in: store)
            if options.explain {
                let plan = try await store.read { try $0.explain(query.request) }
                return try Console.print(options.output.json ? JSON.object(["plan": .string(plan)]).text : plan)
            }
            let progress = ProgressBar("reading \(query.request.entityName)")
            if options.count {
                let count = try await progress.timing { try await store.read { try $0.count(query.request) } }
                return try Console.print(options.output.json ? JSON.object(["count": .number(count)]).text : "\(count)")
            }
            let rows = try await progress.timing { try await store.read { try $0.fetch(query.values).map(\.values) } }
            // A shell goes on after an interrupt, without the rows.
            try Task.checkCancellation()
            guard options.output.json else { return try Console.print(query.table(rows)) }
            try query.print(rows)
        }
    }
}

/// The options that select and show rows.
struct QueryOptions: ParsableArguments {
    @Argument(help: "The store.", completion: .file())
    var file: String

    @Argument(help: "The entity.")
    var entity: String

    @Argument(help: "The condition; all objects without one.")
    var condition: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Sort by these properties; a minus sign means descending. A name with a comma is written in backticks.",
            valueName: "a,-b")
    )
    var sort: String?

    @Option(help: ArgumentHelp("Show these properties instead of all; a path such as album.title is allowed.", valueName: "a,b"))
    var columns: String?

    @Option(parsing: .unconditional, help: "Show at most this number of rows.")
    var limit: Int?

    @Option(parsing: .unconditional, help: "Skip this number of rows.")
    var offset = 0

    @Option(
        help: ArgumentHelp(
            "Compute count, sum(a), min(a), max(a) or average(a), over all objects or per group.", valueName: "count,sum(a)"))
    var aggregate: String?

    @Option(help: ArgumentHelp("Compute the aggregates per value of these properties.", valueName: "a,b"))
    var groupBy: String?

    mutating func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit is a number from 0") }
        if offset < 0 { throw ValidationError("--offset is a number from 0") }
        if groupBy != nil, aggregate == nil { throw ValidationError("--group-by needs --aggregate") }
        if aggregate != nil, columns != nil { throw ValidationError("--columns and --aggregate exclude each other") }
    }
}

/// The options of a query as requests.
struct Query: Sendable {
    /// The objects, for their number and the plan.
    let request: EntityFetchRequest
    /// The rows.
    let values: EntityValueRequest
    private let types: [ColumnType]

    init(_ options: QueryOptions, in store: OpenedStore) throws {
        let entity = try store.entity(options.entity)
        let model = store.model
        let condition = try ConditionParser.condition(options.condition ?? "", on: entity, in: model)
        let sort = try NameList.sort(options.sort ?? "")
        // Groups are sorted by columns of the result, which the request checks.
        if options.aggregate == nil { for part in sort { _ = try Self.column(part.attribute, entity: entity, model: model) } }
        let groups = try Self.list(options.groupBy)
        let columns: [(ResultColumn, ColumnType)]
        if let aggregates = options.aggregate {
            columns =
                try groups.map { try Self.property($0, entity: entity, model: model) }
                + Self.list(aggregates).map { try Self.aggregate($0, entity: entity, model: model) }
        } else if let names = options.columns {
            columns = try Self.list(names).map { try Self.property($0, entity: entity, model: model) }
        } else {
            columns =
                [(ResultColumn.objectID.named("$key"), .reference)]
                + entity.declaredColumns.map { (ResultColumn.property(entity.columns[$0].name), entity.columns[$0].type) }
        }
        guard !columns.isEmpty else { throw ToolError.wrongInput("no columns. Name at least one, separated by commas") }
        types = columns.map(\.1)
        request = EntityFetchRequest(
            entity.name, matching: condition, sortBy: options.aggregate == nil ? sort : [], limit: options.limit,
            offset: options.offset)
        values = EntityValueRequest(
            entity.name, fetching: columns.map(\.0), matching: condition, groupBy: groups, sortBy: sort, limit: options.limit,
            offset: options.offset)
    }

    private static func list(_ text: String?) throws -> [String] { try NameList.names(text ?? "") }

    private static func property(_ name: String, entity: Entity, model: Model) throws -> (ResultColumn, ColumnType) {
        if name == "$key" { return (ResultColumn.objectID.named("$key"), .reference) }
        return (.property(name), try column(name, entity: entity, model: model).type)
    }

    private static func column(_ name: String, entity: Entity, model: Model) throws -> ColumnSchema {
        guard case .column(let column)? = PropertyPath.resolve(name, on: entity, in: model) else {
            throw ToolError.wrongInput(
                PropertyPath.problem(name, on: entity, in: model) { $0.columns.map(\.name) })
        }
        return column
    }

    private static func aggregate(_ text: String, entity: Entity, model: Model) throws -> (ResultColumn, ColumnType) {
        if text == "count" { return (.count, .int64) }
        guard let parts = text.wholeMatch(of: /(\w+)\((.+)\)/) else {
            throw ToolError.wrongInput("\(text): no aggregate. Write count, count(a), sum(a), min(a), max(a) or average(a)")
        }
        let name = String(parts.2)
        let type = try column(name, entity: entity, model: model).type
        if ["sum", "average"].contains(parts.1), !type.isNumeric {
            throw ToolError.wrongInput("\(text): \(name) has no numbers. Use count, min or max")
        }
        switch parts.1 {
        case "count": return (.count(name), .int64)
        case "sum": return (.sum(name), type)
        case "min": return (.min(name), type)
        case "max": return (.max(name), type)
        case "average": return (.average(name), .double)
        default: throw ToolError.wrongInput("\(parts.1): no aggregate. Known are count, sum, min, max and average")
        }
    }

    private var names: [String] { values.propertiesToFetch.map(\.name) }

    /// Returns each row as an object of JSON.
    func lines(_ rows: [[Value]]) -> [JSON] {
        rows.map(json)
    }

    private func json(_ row: [Value]) -> JSON {
        .object(zip(names, zip(row, types)).map { JSON.Member(name: $0, value: ValueText.json($1.0, $1.1)) })
    }

    func json(_ rows: [[Value]]) -> JSON { .array(lines(rows)) }

    /// Prints the rows as an array of JSON with a line per row, some rows at a time.
    func print(_ rows: [[Value]]) throws {
        var text = "["
        for (number, row) in rows.enumerated() {
            text += (number == 0 ? "" : ",\n") + json(row).text
            guard text.utf8.count > 1 << 16 else { continue }
            try Console.current.write(text)
            text = ""
        }
        try Console.print(text + "]")
    }

    /// Returns the rows as a table.
    func table(_ rows: [[Value]]) -> String {
        var table = TextTable(header: names)
        table.numbers = Set(types.indices.filter { ![.string, .data, .uuid, .date].contains(types[$0]) })
        table.rows = rows.map { row in zip(row, types).map { ValueText.shown($0, $1) } }
        return table.text
    }
}
