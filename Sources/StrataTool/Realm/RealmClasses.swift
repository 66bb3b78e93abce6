/// The classes of an export with their objects: those in the file's lists, and one class for each property with embedded objects.
struct RealmClasses {
    struct Class {
        var name: String
        /// The objects, as positions in the graph.
        var nodes: [Int]
    }

    let graph: RealmGraph
    private(set) var classes: [Class]
    /// The class and row of each object that has been found.
    private(set) var rows: [Int: (type: Int, row: Int)] = [:]
    private(set) var notes: [String] = []
    /// The classes of embedded objects, by the class and property that contain them.
    private var embedded: [String: Int] = [:]
    /// The objects of the lists by what they contain.
    private var known: [String: [Int]] = [:]
    private var ambiguous = 0

    /// More classes than any model has.
    private static let limit = 1000
    /// The greatest number of equal objects whose references are compared.
    private static let compared = 64

    init(_ graph: RealmGraph) {
        self.graph = graph
        classes = graph.classes.map { Class(name: $0.name, nodes: $0.nodes) }
    }

    /// Finds the row of every object. Exports have copies of related objects; a copy has the same members and values as one of the
    /// objects of a list.
    mutating func resolve() throws {
        for (type, found) in classes.enumerated() {
            for (row, node) in found.nodes.enumerated() {
                guard rows.updateValue((type, row), forKey: node) == nil else {
                    throw graph.failure("an object of \(found.name) is in the list of another class, too")
                }
                known[fingerprint(node), default: []].append(node)
            }
        }
        var waiting = classes.indices.reversed().flatMap { type in classes[type].nodes.reversed().map { (node: $0, type: type) } }
        while let (node, type) = waiting.popLast() {
            for member in graph.nodes[node] {
                for target in Self.objects(member.value) where rows[target] == nil {
                    if let original = original(of: target) {
                        rows[target] = rows[original]
                    } else {
                        let type = try embeddedClass(type, member.name)
                        rows[target] = (type, classes[type].nodes.count)
                        classes[type].nodes.append(target)
                        waiting.append((target, type))
                    }
                }
            }
        }
        if ambiguous > 0 { notes.append("\(ambiguous) references lead to one of several equal objects") }
        for (key, type) in embedded.sorted(by: { $0.key < $1.key }) {
            notes.append("\(key): its \(classes[type].nodes.count) embedded objects became \(classes[type].name)")
        }
    }

    /// Returns the objects of a value: one, those of a list, or none.
    static func objects(_ value: RealmGraph.Value) -> [Int] {
        switch value {
        case .object(let node): [node]
        case .list(let elements): elements.flatMap { objects($0) }
        default: []
        }
    }

    private mutating func embeddedClass(_ type: Int, _ property: String) throws -> Int {
        let key = "\(classes[type].name).\(property)"
        if let known = embedded[key] { return known }
        guard classes.count < Self.limit else { throw graph.failure("has more than \(Self.limit) classes") }
        let start = property.prefix(1).uppercased() + property.dropFirst()
        let names = Set(classes.map { $0.name.lowercased() })
        var name = names.contains(start.lowercased()) ? classes[type].name + start : start
        while names.contains(name.lowercased()) { name += "_" }
        embedded[key] = classes.count
        classes.append(Class(name: name, nodes: []))
        return classes.count - 1
    }

    // MARK: Copies

    /// Returns the object of a list of which an object is a copy.
    private mutating func original(of node: Int) -> Int? {
        guard let equal = known[fingerprint(node)] else { return nil }
        if equal.count == 1 { return equal[0] }
        // Objects without a primary key may have equal values. Their references may still differ. Comparing many would take too long.
        guard equal.count <= Self.compared else {
            ambiguous += 1
            return equal[0]
        }
        let related = related(node)
        let narrowed = equal.filter { self.related($0) == related }
        if narrowed.count != 1 { ambiguous += 1 }
        return narrowed.first ?? equal[0]
    }

    /// Returns a text that is equal for two objects if the names of their members and their values are equal, except for related objects.
    private func fingerprint(_ node: Int) -> String {
        graph.nodes[node].sorted { $0.name < $1.name }.map { "\($0.name.debugDescription):\(Self.text($0.value))" }
            .joined(separator: ",")
    }

    private func related(_ node: Int) -> [String] {
        graph.nodes[node].sorted { $0.name < $1.name }.flatMap { Self.objects($0.value).prefix(64).map(fingerprint) }
    }

    private static func text(_ value: RealmGraph.Value) -> String {
        switch value {
        case .null: "null"
        case .bool(let flag): "\(flag)"
        case .number(let number): number
        // Many objects can refer to one long text.
        case .text(let text): text.utf8.count <= 256 ? text.debugDescription : "\(text.utf8.count) bytes, hash \(text.hashValue)"
        case .list(let elements): "[\(elements.map(text).filter { $0 != "object" }.joined(separator: ","))]"
        case .object, .reference: "object"
        }
    }
}
