import Datasets
import Foundation

/// Reads the JSON that Realm Studio writes by File > Save data > JSON.
///
/// The file has an array of objects per class. There are three forms:
/// - Realm Studio 1 to 4: a related object is its primary key, or a copy if its class has none.
/// - 5 to 13: a related object is a copy. If objects refer to each other in a circle, each has a `$refId`, and related ones are
///   `{"$ref": …}`.
/// - 14 and later: the format of the package Flatted, an array in which texts, lists and objects are named by their positions.
enum RealmExport {
    /// Returns whether a file begins like an export, without reading all of it.
    static func isExport(_ path: String) -> Bool {
        guard let handle = FileHandle(forReadingAtPath: path) else { return false }
        defer { try? handle.close() }
        let start = (try? handle.read(upToCount: 4096)) ?? Data()
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let bytes = start.dropFirst(start.starts(with: mark) ? 3 : 0).filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if bytes.starts(with: Array("[{".utf8)) || bytes.elementsEqual("{}".utf8) { return true }
        guard bytes.starts(with: Array("{\"".utf8)) else { return false }
        // The first member is a list, which it is not in the lines of `strata export`.
        let name = bytes.dropFirst(2).prefix { $0 != UInt8(ascii: "\"") }
        return bytes.dropFirst(3 + name.count).starts(with: Array(":[".utf8))
    }

    /// The greatest nesting. Copies of related objects contain copies.
    private static let maximumDepth = 256

    /// Reads an export.
    static func read(_ path: String) throws -> Dataset {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ToolError.wrongInput("\(path): cannot be read. Check the path and its permissions")
        }
        let name = URL(fileURLWithPath: path).lastPathComponent
        let json: JSON
        do throws(JSONParser.Failure) { json = try JSONParser.parse(data, maximumDepth: maximumDepth) } catch {
            throw ToolError.wrongInput("\(path): byte \(error.position): \(error.reason). Export it again with Realm Studio")
        }
        let graph = try RealmGraph(json, file: name, size: data.count)
        guard !graph.classes.isEmpty else {
            throw ToolError.wrongInput("\(path): has no classes. Export it again with Realm Studio")
        }
        var classes = RealmClasses(graph)
        try classes.resolve()
        var tables = RealmTables(classes, file: name, size: data.count)
        return try tables.dataset()
    }
}

/// The objects of an export and the values of their properties, whichever form the file has.
struct RealmGraph {
    indirect enum Value {
        case null
        case bool(Bool)
        case number(String)
        case text(String)
        case list([Value])
        /// An object by its position in ``nodes``.
        case object(Int)
        /// An object by its `$refId`, until all objects are known.
        case reference(String)
    }

    struct Member {
        var name: String
        var value: Value
    }

    private(set) var nodes: [[Member]] = []
    /// The objects of each class.
    private(set) var classes: [(name: String, nodes: [Int])] = []
    let file: String
    private var references: [String: Int] = [:]

    init(_ json: JSON, file: String, size: Int) throws {
        self.file = file
        switch json {
        case .object(let members): try readPlain(members)
        case .array(let elements): try readFlatted(elements, size: size)
        default: throw failure("is no export of Realm Studio, which has an object or a list")
        }
    }

    func failure(_ reason: String) -> ToolError {
        // Names of the file may contain line breaks.
        let line = reason.split(whereSeparator: \.isNewline).joined(separator: " ")
        return .wrongInput("\(file): \(line). Export it again with Realm Studio")
    }

    private func checkNames(_ members: [JSON.Member], of object: String) throws {
        var names: Set<String> = []
        for member in members where !names.insert(member.name).inserted {
            throw failure("\(object) has two members \(member.name)")
        }
    }

    // MARK: Plain JSON

    private mutating func readPlain(_ members: [JSON.Member]) throws {
        try checkNames(members, of: "the file")
        for member in members {
            guard case .array(let elements) = member.value else { throw failure("\(member.name) is not a list of objects") }
            var found: [Int] = []
            for element in elements {
                // An object that another one refers to may be a reference here.
                switch try value(element, of: member.name) {
                case .object(let node): found.append(node)
                case .reference(let id): found.append(try target(id))
                default: throw failure("\(member.name) has an element that is not an object")
                }
            }
            var known: Set<Int> = []
            classes.append((member.name, found.filter { known.insert($0).inserted }))
        }
        for node in nodes.indices {
            for (position, member) in nodes[node].enumerated() { nodes[node][position].value = try resolved(member.value) }
        }
    }

    private func target(_ id: String) throws -> Int {
        guard let node = references[id] else { throw failure("no object has the $refId \(id)") }
        return node
    }

    private func resolved(_ value: Value) throws -> Value {
        switch value {
        case .reference(let id): .object(try target(id))
        case .list(let elements): .list(try elements.map(resolved))
        default: value
        }
    }

    private mutating func value(_ json: JSON, of owner: String) throws -> Value {
        switch json {
        case .null: return .null
        case .bool(let flag): return .bool(flag)
        case .number(let number): return .number(number)
        case .string(let text): return .text(text)
        case .array(let elements): return .list(try elements.map { try value($0, of: owner) })
        case .object(let members):
            if members.count == 1, members[0].name == "$ref" { return .reference(members[0].value.text) }
            try checkNames(members, of: "an object of \(owner)")
            let node = nodes.count
            nodes.append([])
            for member in members {
                if member.name == "$refId" {
                    guard references.updateValue(node, forKey: member.value.text) == nil else {
                        throw failure("two objects have the $refId \(member.value.text)")
                    }
                } else {
                    nodes[node].append(Member(name: member.name, value: try value(member.value, of: owner)))
                }
            }
            return .object(node)
        }
    }

    // MARK: Flatted

    private mutating func readFlatted(_ elements: [JSON], size: Int) throws {
        guard case .object(let members)? = elements.first else { throw failure("its first element is not an object of classes") }
        try checkNames(members, of: "the file")
        var known: [Int: Int] = [:]
        var waiting: [Int] = []
        // A list can be named more than once, so that few bytes could stand for many elements.
        var budget = max(size, 1024)
        func element(_ text: String) throws -> (number: Int, value: JSON) {
            guard let number = Int(text), elements.indices.contains(number) else { throw failure("has no element \(text)") }
            return (number, elements[number])
        }
        func value(_ json: JSON, isInList: Bool = false) throws -> Value {
            switch json {
            case .null: return .null
            case .bool(let flag): return .bool(flag)
            case .number(let number): return .number(number)
            case .string(let position):
                let (number, target) = try element(position)
                switch target {
                case .string(let text): return .text(text)
                case .object:
                    if let node = known[number] { return .object(node) }
                    known[number] = nodes.count
                    nodes.append([])
                    waiting.append(number)
                    return .object(nodes.count - 1)
                case .array(let list):
                    guard !isInList else { throw failure("has a list in a list, which is not supported") }
                    budget -= list.count
                    guard budget >= 0 else { throw failure("names a list too often") }
                    return .list(try list.map { try value($0, isInList: true) })
                default: throw failure("element \(position) is neither a text, a list nor an object")
                }
            case .array, .object: throw failure("has a list or an object where its position is expected")
            }
        }
        for member in members {
            guard case .list(let list) = try value(member.value) else { throw failure("\(member.name) is not a list of objects") }
            var found: Set<Int> = []
            let objects = try list.map { element -> Int in
                guard case .object(let node) = element, found.insert(node).inserted else {
                    throw failure("\(member.name) has an element that is not an object, or occurs twice")
                }
                return node
            }
            classes.append((member.name, objects))
        }
        while let number = waiting.popLast() {
            guard let node = known[number], case .object(let members) = elements[number] else { continue }
            try checkNames(members, of: "element \(number)")
            nodes[node] = try members.map { Member(name: $0.name, value: try value($0.value)) }
        }
    }
}
