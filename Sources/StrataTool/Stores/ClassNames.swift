import ObjectGraph

/// The names of the classes of a model. An entity has the name of its class, unless Swift, Foundation or Strata has a type of that name which
/// the source or its macros use: a class `Data` could have no attribute of data. A class is not named like a property either, because
/// the name would mean the property in other properties of its class.
struct ClassNames {
    private let names: [String: String]

    init(_ model: Model) {
        let all = model.entities.map(\.name) + model.subentities.map(\.name)
        var taken = Set(all.map { $0.lowercased() })
        let properties = Set(
            model.entities.flatMap { $0.columns.map(\.name) + $0.relationships.map(\.name) })
        var names: [String: String] = [:]
        for name in all where names[name] == nil && (Self.reserved.contains(name) || properties.contains(name)) {
            var made = name + "Object"
            while !taken.insert(made.lowercased()).inserted { made += "_" }
            names[name] = made
        }
        self.names = names
    }

    /// Returns the name of an entity's class, in backticks if it needs them.
    func quoted(_ entity: String) throws -> String { try SwiftSource.quoted(names[entity] ?? entity) }

    /// Returns whether the class has another name than the entity.
    func isRenamed(_ entity: String) -> Bool { names[entity] != nil }

    private static let reserved: Set<String> = [
        "Any", "AnyKeyPath", "AnyObject", "Array", "Attribute", "AttributeDescription", "Bool", "Data", "Date", "Derived",
        "Dictionary",
        "Double", "EntityDescription", "Float", "Foundation", "Index", "IndexDescription", "Int", "Int16", "Int32", "Int64",
        "Int8",
        "ManagedObject", "Model", "ModelAnchor", "ModelPlaceholder", "Never", "Optional", "PersistentModel", "Protocol",
        "PropertyDescription", "Relationship", "RelationshipDescription", "Self", "Set", "Strata", "String", "Swift", "Type",
        "UInt16",
        "UInt32", "UInt64", "UInt8", "UUID", "Unique", "Void",
    ]
}
