/// Chooses property names that a model accepts: unique regardless of case.
public struct PropertyNames: Sendable {
    private var taken: [Set<String>]

    /// Creates names for a number of tables, in which no name is taken.
    public init(tableCount: Int) { taken = Array(repeating: [], count: tableCount) }

    /// Returns the wanted name, followed by underscores if it is taken.
    public mutating func take(_ wanted: String, in table: Int) -> String {
        var name = wanted.isEmpty ? "column" : wanted
        while !taken[table].insert(name.lowercased()).inserted { name += "_" }
        return name
    }

    /// Returns whether no property of a table has a name.
    public func isFree(_ name: String, in table: Int) -> Bool { !name.isEmpty && !taken[table].contains(name.lowercased()) }

    /// Returns the name of the relationship for a column: the column's name without "Id" at its end.
    public static func relationship(forColumn column: String) -> String {
        for ending in ["_id", "_Id", "_ID", "Id", "ID"] where column.hasSuffix(ending) && column.count > ending.count {
            return lowercasedFirst(String(column.dropLast(ending.count)))
        }
        return lowercasedFirst(column)
    }

    /// Returns the name of the inverse relationship to the rows of a table.
    public static func plural(ofTable table: String) -> String {
        let name = lowercasedFirst(table)
        return name.hasSuffix("s") ? name : name + "s"
    }

    private static func lowercasedFirst(_ name: String) -> String {
        guard let first = name.first else { return name }
        return first.lowercased() + name.dropFirst()
    }
}
