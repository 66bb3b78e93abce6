/// Names of a model that were exchanged: `a` was `b`, and `b` was `a`.
///
/// Both names exist before and after the exchange. Schemas alone therefore do not show whether a file still has the old
/// meaning. A file records the exchanges of the model that it was last migrated to. An exchange that the file has not
/// recorded is carried out.
public struct ExchangedNames: Sendable, Hashable {
    /// One line per name: `Track<Album` for an entity, `Track.a<b` for a column, `Track.a<Track.b` for a link.
    public private(set) var lines: Set<String> = []

    /// Creates the set of exchanges that a model asks for.
    public init(of schema: StoreSchema) {
        // The order of a relationship has all names that its link has. No link has the name of a relationship at its back end.
        insert(schema.entities.map { ($0.name, $0.otherFormerNames + [$0.renamedFrom].compactMap(\.self)) }, "")
        for entity in schema.entities {
            insert(entity.columns.map { ($0.name, [$0.renamedFrom].compactMap(\.self)) }, entity.name + ".")
        }
        insert(schema.links.map { ($0.name, $0.formerNames) }, "")
        for link in schema.links where link.reversedNames.contains(link.name) {
            lines.insert("\(link.name)<\(link.name)")
        }
    }

    /// Creates the set from the lines that a file has recorded.
    public init(lines: Set<String> = []) { self.lines = lines }

    /// A Boolean value that indicates whether no names were exchanged.
    public var isEmpty: Bool { lines.isEmpty }

    /// Returns the exchanges that a file has not recorded.
    package func subtracting(_ recorded: ExchangedNames) -> ExchangedNames {
        ExchangedNames(lines: lines.subtracting(recorded.lines))
    }

    /// Returns the recorded exchanges under the names that a step gives to their entities. An entity that the step exchanges with another
    /// one keeps its own exchanges, and does not get those of the other one.
    package func renamed(from old: StoreSchema, to new: StoreSchema) -> ExchangedNames {
        let known = Set(old.entities.map(\.name))
        let pending = ExchangedNames(of: new).subtracting(self)
        let names = new.entities.compactMap { entity -> (new: String, former: String)? in
            guard !entity.isOrder, let former = entity.renamedFrom, known.contains(former),
                !known.contains(entity.name) || pending.contains(entity.name, former)
            else { return nil }
            return (entity.name, former)
        }
        var all = lines.filter { line in !names.contains { Self.line(line, of: $0.new, as: $0.new) != nil } }
        for (name, former) in names { all.formUnion(lines.compactMap { Self.line($0, of: former, as: name) }) }
        return ExchangedNames(lines: all)
    }

    /// Returns the line of a property of an entity under another name of the entity; nil for a line of something else.
    private static func line(_ line: String, of entity: String, as name: String) -> String? {
        func renamed(_ end: Substring) -> String? {
            for (before, after) in [(entity, name), (EntitySchema.orderName(of: entity), EntitySchema.orderName(of: name))]
            where end.hasPrefix(before + ".") {
                return after + end.dropFirst(before.count)
            }
            return nil
        }
        // A line of a link or its order has the name of the entity twice.
        let ends = line.split(separator: "<", maxSplits: 1)
        guard let first = ends.first.flatMap(renamed) else { return nil }
        return ([first] + ends.dropFirst().map { renamed($0) ?? String($0) }).joined(separator: "<")
    }

    package func contains(_ name: String, _ former: String, in scope: String = "") -> Bool {
        lines.contains("\(scope)\(name)<\(former)")
    }

    /// Inserts the names whose chain of former names leads back to the name itself.
    private mutating func insert(_ names: [(name: String, former: [String])], _ scope: String) {
        let former = Dictionary(names.map { ($0.name, $0.former) }) { first, _ in first }
        for (name, candidates) in former {
            for candidate in candidates where candidate != name && Self.leads(from: candidate, to: name, former) {
                lines.insert("\(scope)\(name)<\(candidate)")
            }
        }
    }

    private static func leads(from start: String, to end: String, _ former: [String: [String]]) -> Bool {
        var seen: Set<String> = []
        var waiting = [start]
        while let name = waiting.popLast() {
            if name == end { return true }
            if seen.insert(name).inserted { waiting += former[name] ?? [] }
        }
        return false
    }
}
