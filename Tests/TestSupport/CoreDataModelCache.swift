import Foundation

/// A model as Core Data keeps it in the table `Z_MODELCACHE` of its files: a compressed archive of its entities.
public struct CoreDataModelCache {
    /// A property of an entity.
    public enum Property {
        /// An attribute with Core Data's number of its type, such as 700 for strings.
        case attribute(String, Int, isOptional: Bool = true, isExternal: Bool = false)
        case toOne(String, to: String, inverse: String)
        case toMany(String, to: String, inverse: String, isOrdered: Bool = false)
    }

    private struct Entity {
        var name: String
        var superentity: String?
        var isAbstract: Bool
        var properties: [Property]
        /// The names of the properties of each unique constraint, and of each index over several properties.
        var unique: [[String]]
        var indexed: [[String]]
    }

    private var entities: [Entity] = []
    /// Whether an ordered relationship has a member of the archive for it, as in old files. In newer ones it has a bit among its flags.
    private let hasMemberForOrder: Bool

    public init(hasMemberForOrder: Bool = false) { self.hasMemberForOrder = hasMemberForOrder }

    /// Adds an entity, after the one from which it inherits.
    public mutating func add(
        _ name: String, superentity: String? = nil, isAbstract: Bool = false, _ properties: [Property],
        unique: [[String]] = [], indexed: [[String]] = []
    ) {
        // Archives have inherited properties, constraints and indexes once more per sub-entity.
        let inherited = entities.first { $0.name == superentity }
        entities.append(
            Entity(
                name: name, superentity: superentity, isAbstract: isAbstract,
                properties: (inherited?.properties ?? []) + properties, unique: (inherited?.unique ?? []) + unique,
                indexed: (inherited?.indexed ?? []) + indexed))
    }

    /// The content of the column `Z_CONTENT` as an SQL literal.
    public var sqlLiteral: String {
        let bytes = bytes
        return "x'" + bytes.map { (String($0 >> 4, radix: 16)) + String($0 & 15, radix: 16) }.joined() + "'"
    }

    /// The compressed archive: one block of deflate that is stored as it is.
    public var bytes: [UInt8] {
        let archive = archive()
        let (low, high) = (UInt8(archive.count & 0xFF), UInt8(archive.count >> 8))
        return [1, low, high, ~low, ~high] + archive
    }

    private func archive() -> [UInt8] {
        var list = PropertyList()
        var objects: [Int] = [list.text("$null")]
        func reference(_ text: String) -> Int {
            objects.append(list.text(text))
            return list.reference(objects.count - 1)
        }
        func lists(_ names: [[String]]) -> Int {
            func array(of elements: [Int]) -> Int {
                objects.append(list.dictionary([("NS.objects", list.array(elements))]))
                return list.reference(objects.count - 1)
            }
            return array(of: names.map { array(of: $0.map(reference)) })
        }
        var numbers: [String: Int] = [:]
        for entity in entities {
            var members = [("NSEntityName", reference(entity.name)), ("NSProperties", list.reference(0))]
            if entity.isAbstract { members.append(("NSIsAbstract", list.flag(true))) }
            if !entity.unique.isEmpty { members.append(("NSUniqueTuples", lists(entity.unique))) }
            if !entity.indexed.isEmpty { members.append(("NSCompoundIndexes", lists(entity.indexed))) }
            objects.append(list.dictionary(members))
            numbers[entity.name] = objects.count - 1
        }
        for entity in entities {
            for property in entity.properties {
                var members = [("NSEntity", list.reference(numbers[entity.name] ?? 0))]
                switch property {
                case .attribute(let name, let type, let isOptional, let isExternal):
                    members.append(("NSPropertyName", reference(name)))
                    members.append(("NSAttributeType", list.number(type)))
                    members.append(("NSFlagsKey", list.number(isExternal ? 4 : 0)))
                    if isOptional { members.append(("NSIsOptional", list.flag(true))) }
                case .toOne(let name, let destination, let inverse), .toMany(let name, let destination, let inverse, _):
                    var most = 0
                    if case .toOne = property { most = 1 }
                    if case .toMany(_, _, _, true) = property {
                        members.append(hasMemberForOrder ? ("NSIsOrdered", list.flag(true)) : ("_P", list.number(0x4F3)))
                    }
                    members.append(("NSPropertyName", reference(name)))
                    members.append(("NSMaxCount", list.number(most)))
                    members.append(("NSIsOptional", list.flag(true)))
                    members.append(("_NSDestinationEntityName", reference(destination)))
                    members.append(("_NSInverseRelationshipName", reference(inverse)))
                }
                objects.append(list.dictionary(members))
            }
        }
        let top = list.dictionary([("$objects", list.array(objects))])
        return list.file(top: top)
    }
}

/// A binary property list while it is written.
private struct PropertyList {
    private var objects: [[UInt8]] = []

    private static func pair(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    private mutating func add(_ bytes: [UInt8]) -> Int {
        objects.append(bytes)
        return objects.count - 1
    }

    mutating func text(_ text: String) -> Int { add([0x5F, 0x11] + Self.pair(text.utf8.count) + Array(text.utf8)) }
    mutating func number(_ number: Int) -> Int { add([0x12] + (0..<4).reversed().map { UInt8(number >> ($0 * 8) & 0xFF) }) }
    mutating func flag(_ flag: Bool) -> Int { add([flag ? 9 : 8]) }
    /// Adds a reference to an object of the archive.
    mutating func reference(_ object: Int) -> Int { add([0x81] + Self.pair(object)) }
    mutating func array(_ elements: [Int]) -> Int {
        add([0xAF, 0x11] + Self.pair(elements.count) + elements.flatMap(Self.pair))
    }

    mutating func dictionary(_ members: [(String, Int)]) -> Int {
        let keys = members.map { text($0.0) }
        return add([0xDF, 0x11] + Self.pair(members.count) + (keys + members.map(\.1)).flatMap(Self.pair))
    }

    func file(top: Int) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in objects {
            offsets += [0, 0] + Self.pair(bytes.count)
            bytes += object
        }
        let table = bytes.count
        func long(_ number: Int) -> [UInt8] { (0..<8).reversed().map { UInt8(number >> ($0 * 8) & 0xFF) } }
        return bytes + offsets + [0, 0, 0, 0, 0, 0, 4, 2] + long(objects.count) + long(top) + long(table)
    }
}
