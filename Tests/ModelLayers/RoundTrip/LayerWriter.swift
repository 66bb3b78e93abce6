import ObjectGraph
import StrataSwiftData

typealias AnyModel = any StrataSwiftData.PersistentModel
typealias AnyModelType = any StrataSwiftData.PersistentModel.Type

/// Makes objects of models and sets their properties by key paths, which call the accessors that `@Model` generates.
public final class LayerWriter {
    let context: ModelContext
    let samples: Samples
    let models: [String: AnyModelType]
    /// The number of the last object, from which samples are made.
    var number = 0
    /// The initializers of each model.
    var initializers: [String: [Initializer]] = [:]
    var counts = Counts()
    /// The checks of another context.
    var checks: [Check] = []
    var failures: [String] = []
    /// Messages about parts that are not compared.
    var notes: Set<String> = []
    private let entities: [String: Schema.Entity]
    /// The number of objects that were made of each model; an initializer can make more.
    private var made: [String: Int] = [:]

    init(_ context: ModelContext, models: [AnyModelType], samples: Samples) {
        self.context = context
        self.samples = samples
        self.models = Dictionary(uniqueKeysWithValues: models.map { ($0.entityName, $0) })
        entities = Schema(models).entitiesByName
        for name in entities.keys where self.models[name] == nil { failures.append("\(name) was not found in the sources") }
    }

    /// Writes an object with a value in every attribute, one with nil in every optional attribute, one per relationship, and one per
    /// initializer.
    func write<T: StrataSwiftData.PersistentModel>(_ type: T.Type) throws {
        let (attributes, relationships) = try properties(of: type)
        counts.models += 1
        counts.attributes += attributes.count
        counts.relationships += relationships.count
        check(try make(type), attributes: attributes, after: "setting all attributes")
        let sparse = try make(type)
        for (keyPath, attribute) in attributes where attribute.isOptional {
            setNil(keyPath, on: sparse, name: "\(type.entityName).\(attribute.name)")
        }
        check(sparse, attributes: attributes, after: "setting attributes to nil")
        for (keyPath, relationship) in relationships {
            try relate(try make(type), by: relationship, keyPath: keyPath)
        }
        for initializer in initializers[type.entityName] ?? [] {
            number += 1
            guard let (model, arguments) = try initializer.call(true), let model = model as? T else { continue }
            counts.initializers += 1
            context.insert(model)
            check(model, attributes: attributes, after: initializer.name)
            for (keyPath, relationship) in relationships {
                let others = arguments[relationship.name] ?? related(model, by: keyPath)
                try check(model, relationship: relationship, keyPath: keyPath, has: others)
            }
        }
    }

    /// Adds a check that the file has as many objects of a model as the context.
    func checkCount<T: StrataSwiftData.PersistentModel>(of type: T.Type) throws {
        let count = try context.fetchCount(FetchDescriptor<T>())
        let made = made[type.entityName] ?? 0
        if count < made { failures.append("\(type.entityName): \(made) objects were made, the context has \(count)") }
        checks.append { context in
            let found = try context.fetch(FetchDescriptor<T>()).count
            return found == count ? [] : ["\(type.entityName): the context had \(count) objects, \(found) were fetched"]
        }
    }

    typealias Properties = (attributes: [(AnyKeyPath, Schema.Attribute)], relationships: [(AnyKeyPath, Schema.Relationship)])

    /// Returns the properties of a model with their key paths, in the order of their names.
    private func properties<T: StrataSwiftData.PersistentModel>(of type: T.Type) throws -> Properties {
        guard let entity = entities[type.entityName] else { throw LayerError("\(type.entityName) is not in the schema") }
        var properties: Properties = ([], [])
        let keyPaths = Dictionary(uniqueKeysWithValues: type.columnsByKeyPath.map { ($1, $0) })
        for property in entity.storedProperties {
            guard let keyPath = keyPaths[property.name] else {
                throw LayerError("\(entity.name).\(property.name) has no key path")
            }
            if let attribute = property as? Schema.Attribute { properties.attributes.append((keyPath, attribute)) }
            if let relationship = property as? Schema.Relationship { properties.relationships.append((keyPath, relationship)) }
        }
        return properties
    }

    /// Returns a new object in the context, with a value in each attribute and in each relationship that cannot be empty.
    func make<T: StrataSwiftData.PersistentModel>(_ type: T.Type) throws -> T {
        let (attributes, relationships) = try properties(of: type)
        number += 1
        let initialized = try initializers[type.entityName]?.first?.call(false)?.model as? T
        let model = initialized ?? T(managedObject: ManagedObject(detached: DetachedEntity(subclass: type)))
        // Other numbers than those of objects that the initializer made, whose values may have to be unique.
        number += 1
        made[type.entityName, default: 0] += 1
        for (keyPath, attribute) in attributes { setSample(keyPath, on: model, name: "\(type.entityName).\(attribute.name)") }
        context.insert(model)
        for (keyPath, relationship) in relationships where !relationship.isOptional {
            let least = relationship.isToOneRelationship ? 1 : relationship.minimumModelCount ?? 0
            if least > 0 { try set(keyPath, on: model, to: (0..<least).map { _ in try makeDestination(of: relationship) }) }
        }
        return model
    }

    func makeDestination(of relationship: Schema.Relationship) throws -> AnyModel {
        guard let type = models[relationship.destination] else { throw LayerError("\(relationship.destination) was not found") }
        return try make(type)
    }
}

struct LayerError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
