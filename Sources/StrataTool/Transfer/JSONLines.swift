import Foundation
import ObjectGraph
import StoreInterface
import StoreModel

/// A store as lines of JSON. The first line has the schema, and each further line is one object.
///
/// ```json
/// {"$strata":1,"schema":{"entities":[…],"links":[…],"version":{…}}}
/// {"$entity":"Track","$id":1,"title":"Baguette","album":3,"playlists":[1,2]}
/// ```
/// Members that begin with `$` are not properties. References and links contain the `$id` of objects. A link is a member of the object
/// that is its source. Null and empty links have no member.
///
/// The keyed collections follow the objects: a line with the types of each, and a line per entry. A file that has any is of version 2.
/// ```json
/// {"$collection":"drafts","keys":"String","values":"Draft"}
/// {"$collection":"drafts","key":["spring"],"value":{"title":"Spring"}}
/// ```
/// In a key, an object is named by its entity and its `$id`, such as `Track 1`. An id of an object of another store is written as it is.
enum JSONLines {
    /// The versions of files without and with keyed collections.
    static let (version, versionWithCollections) = (1, 2)
    static let entityMember = "$entity"
    static let idMember = "$id"
    static let collectionMember = "$collection"

    /// Writes the objects of a source.
    static func write(_ source: any ObjectSource, to writer: TextWriter) throws -> TransferSummary {
        let model = source.model
        for entity in model.entities {
            for name in PropertyPath.names(of: entity) where name.hasPrefix("$") {
                throw ToolError.failed(
                    "cannot write \(entity.name).\(name) as JSON lines: members that begin with $ have another meaning. Export as CSV or SQLite"
                )
            }
        }
        let schema = try SchemaText.json(model.storeSchema)
        try writer.write(#"{"$strata":\#(source.hasCollections ? versionWithCollections : version),"schema":\#(schema)}"# + "\n")
        let progress = ProgressBar("objects")
        defer { progress.finish() }
        let total = source.objectCount
        var summary = TransferSummary(objects: model.entities.map { _ in 0 })
        var written = 0
        while let object = try source.next() {
            try Task.checkCancellation()
            try writer.write(line(object, model) + "\n")
            summary.objects[object.entity] += 1
            summary.pairs += object.links.reduce(0) { $0 + $1.destinations.count }
            written += 1
            if let total { progress.update(written, of: total) } else { progress.update(written) }
        }
        let names = TransferIDs.names(in: model)
        var collections: [CollectionName: StoredCollection] = [:]
        while let record = try source.nextRecord() {
            try Task.checkCancellation()
            summary.count(record)
            switch record {
            case .collection(let collection):
                collections[CollectionName(collection.name)] = collection
                try writer.write(line(collection.name, CollectionText.members(collection)) + "\n")
            case .entry(let name, let entry):
                guard let collection = collections[CollectionName(name)] else { continue }
                try writer.write(line(name, CollectionText.members(entry, of: collection, naming: names)) + "\n")
            }
        }
        return summary
    }

    /// Returns a line of a keyed collection.
    private static func line(_ collection: String, _ members: [JSON.Member]) -> String {
        JSON.object([JSON.Member(name: collectionMember, value: .string(collection))] + members).text
    }

    static func line(_ object: TransferObject, _ model: Model) -> String {
        let entity = model.entities[object.entity]
        var members = [
            JSON.Member(name: entityMember, value: .string(entity.name)),
            JSON.Member(name: idMember, value: .number(object.id)),
        ]
        for (value, column) in zip(object.values, entity.columns) where !value.isNull {
            members.append(JSON.Member(name: column.name, value: ValueText.json(value, column.type)))
        }
        for links in object.links where !links.destinations.isEmpty {
            members.append(
                JSON.Member(
                    name: SchemaText.property(ofLink: links.link, model.storeSchema),
                    value: .array(links.destinations.map { .number($0) })))
        }
        return JSON.object(members).text
    }
}

/// The schema of a store as JSON, and the names of links.
enum SchemaText {
    /// Returns the schema with sorted members, so that equal schemas have equal texts.
    static func json(_ schema: StoreSchema) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(schema.withoutHints), as: UTF8.self)
    }

    /// Returns the model of a schema in JSON.
    /// - Parameter name: The name of the file for errors.
    static func model(_ json: some DataProtocol, in name: String) throws -> Model {
        let schema: StoreSchema
        do { schema = try JSONDecoder().decode(StoreSchema.self, from: Data(json)) } catch {
            throw ToolError.wrongInput("\(name): the schema cannot be read. Export the store again")
        }
        do { return try Model(stored: schema) } catch {
            throw ToolError.wrongInput("\(name): the schema belongs to no model. Export the store again")
        }
    }

    /// Returns the name of the relationship that a link is named after: `tracks` of the link `Playlist.tracks`.
    static func property(ofLink link: LinkIndex, _ schema: StoreSchema) -> String {
        let found = schema.links[link]
        let prefix = schema.entities[found.source].name + "."
        return found.name.hasPrefix(prefix) ? String(found.name.dropFirst(prefix.count)) : found.name
    }
}

/// The objects of a file of JSON lines.
final class JSONLinesSource: ObjectSource {
    let model: Model
    var objectCount: Int? { nil }
    let notes: [String] = []
    var place: String? { "\(path):\(reader.line)" }
    private let reader: LineReader
    private let path: String
    /// The column or link of each member, by entity and name.
    private let members: [[String: Property]]

    /// The line after the last object.
    private var firstRecord: JSON?
    /// The collections whose types were read, by name.
    private var collections: [CollectionName: StoredCollection] = [:]

    private enum Property {
        case column(ColumnIndex, ColumnSchema)
        case link(LinkIndex)
    }

    init(_ path: String) throws {
        self.path = path
        reader = try LineReader(path)
        guard let first = try reader.next(), let header = try? JSONParser.parse(first), header["$strata"] != nil else {
            throw ToolError.wrongInput(
                "\(path):1: no header with the schema. JSON is imported only from `strata export` and Realm Studio. Convert other data to CSV"
            )
        }
        let versions: [JSON] = [.number(JSONLines.version), .number(JSONLines.versionWithCollections)]
        guard let version = header["$strata"], versions.contains(version), let schema = header["schema"] else {
            throw ToolError.wrongInput("\(path):1: written by a newer version of this tool. Update the tool")
        }
        let model = try SchemaText.model(Data(schema.text.utf8), in: path)
        self.model = model
        members = model.entities.map { entity in
            var members: [String: Property] = [:]
            for (number, column) in entity.columns.enumerated(as: ColumnIndex.self) {
                members[column.name] = .column(number, column)
            }
            for (number, link) in model.storeSchema.links.enumerated(as: LinkIndex.self) where link.source == entity.number {
                members[SchemaText.property(ofLink: number, model.storeSchema)] = .link(number)
            }
            return members
        }
    }

    private func failure(_ reason: String) -> ToolError { .wrongInput("\(path):\(reader.line): \(reason)") }

    /// Returns the next line.
    private func nextLine() throws -> JSON? {
        guard let line = try reader.next() else { return nil }
        do throws(JSONParser.Failure) {
            // The values of collections may be nested, as the encoder allows.
            return try JSONParser.parse(line, maximumDepth: 512)
        } catch {
            throw failure("character \(error.position): \(error.reason). Correct the line")
        }
    }

    func nextRecord() throws -> StoredCollection.Record? {
        guard let json = try firstRecord ?? nextLine() else { return nil }
        firstRecord = nil
        guard case .string(let name)? = json[JSONLines.collectionMember] else {
            throw failure("a line of a collection is expected. Move objects before the collections")
        }
        if let collection = collections[CollectionName(name)] {
            guard let entry = CollectionText.entry(json, of: collection, naming: TransferIDs.names(in: model)) else {
                throw failure(
                    "no entry of \(name): a key and a value of its types are expected."
                        + CollectionText.formOfData(in: collection) + " Correct the line")
            }
            return .entry(name, entry)
        }
        guard case .string(let keys)? = json["keys"], case .string(let values)? = json["values"],
            let collection = try? StoredCollection(name: name, keyType: keys, valueType: values)
        else { throw failure("the types of \(name) are expected before its entries: keys and values. Correct the line") }
        collections[CollectionName(name)] = collection
        return .collection(collection)
    }

    func next() throws -> TransferObject? {
        guard firstRecord == nil, let json = try nextLine() else { return nil }
        if json[JSONLines.collectionMember] != nil {
            firstRecord = json
            return nil
        }
        guard case .object(let found) = json, case .string(let name)? = json[JSONLines.entityMember],
            case .number(let text)? = json[JSONLines.idMember], let id = UInt64(text), id > 0
        else { throw failure("an object needs the members $entity and $id. Correct the line") }
        guard let entity = model.entity(named: name) else {
            throw failure("the schema has no entity \(name). Correct the name, or export the store again")
        }
        var object = TransferObject(entity: entity.number, id: id, values: entity.columns.map { _ in .null })
        var given: Set<String> = []
        for member in found {
            guard given.insert(member.name).inserted else { throw failure("\(member.name) occurs twice. Remove one of them") }
            if member.name.hasPrefix("$") { continue }
            switch members[entity.number][member.name] {
            case .column(let number, let column): object.values[number] = try value(member, column: column, entity: name)
            case .link(let number):
                object.links.append(TransferObject.Links(link: number, destinations: try destinations(member, name)))
            case nil: throw failure("\(name) has no property \(member.name). Correct the name, or export the store again")
            }
        }
        for (value, column) in zip(object.values, entity.columns) where value.isNull && !column.isOptional {
            throw failure("\(name).\(column.name) is missing. Give it a value")
        }
        if entity.superentityName != nil { try checkType(of: object, as: entity) }
        return object
    }

    /// Throws if an object does not belong to the inheriting entity that its line names.
    private func checkType(of object: TransferObject, as entity: Entity) throws {
        let schema = model.storeSchema.entities[entity.number]
        guard let column = schema.typeColumn, case .int(let type) = object.values[column],
            schema.types(ofSubentity: entity.name).contains(type)
        else {
            throw failure(
                "\(entity.name) \(object.id) has a \(schema.typeName) that \(entity.name) does not have. Correct it, or name the "
                    + "entity \(schema.name)")
        }
    }

    private func value(_ member: JSON.Member, column: ColumnSchema, entity: String) throws -> Value {
        guard let value = ValueText.value(member.value, column.type) else {
            throw failure(ValueText.misfit("\(entity).\(member.name)", text: member.value.text, type: column.type))
        }
        return value
    }

    private func destinations(_ member: JSON.Member, _ entity: String) throws -> [UInt64] {
        guard case .array(let elements) = member.value else {
            throw failure("\(entity).\(member.name) is a list of ids. Correct the value")
        }
        return try elements.map { element in
            guard case .number(let text) = element, let id = UInt64(text), id > 0 else {
                throw failure("\(entity).\(member.name) is a list of ids. Correct the value")
            }
            return id
        }
    }
}
