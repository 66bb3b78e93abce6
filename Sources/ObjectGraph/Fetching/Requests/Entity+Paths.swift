extension Entity {
    /// Returns the names of the properties on a path such as `album.artist.name`, split at its dots.
    ///
    /// A name that contains dots, such as `Sepal.Length`, stays whole: the longest property that the path begins with comes first, and the
    /// rest belongs to the destination. A path of unknown names is split at each dot.
    public func names(onPath path: String, in model: Model) -> [String] { names(onPath: path, in: model.entities) }

    /// Returns the names of the properties on a path, as the method that takes a model does, while the model is being made.
    ///
    /// - Parameter entities: The entities of the model, by number.
    func names(onPath path: String, in entities: [Entity]) -> [String] {
        guard path.utf8.contains(UInt8(ascii: ".")), column(named: path) == nil, relationship(named: path) == nil else {
            return [path]
        }
        return names(onPathThroughRelationship: path, in: entities) ?? Self.split(path)
    }

    /// Returns the names on a path that leads from this entity to another property through the relationship with the longest name; nil if
    /// the path begins with no relationship.
    ///
    /// - Parameter isStrict: Whether each further step goes through a relationship, too, if there is one. Otherwise the longest name comes
    ///   first there.
    func names(onPathThroughRelationship path: String, in entities: [Entity], isStrict: Bool = false) -> [String]? {
        var end = path.endIndex
        while let dot = path[..<end].lastIndex(of: ".") {
            end = dot
            let head = String(path[..<dot])
            // The head of a hierarchy has the properties of all of its entities.
            guard
                let destination = relationship(named: head)?.destination
                    ?? column(named: head).flatMap({ columns[$0].destination })
            else { continue }
            let (next, rest) = (entities[destination], String(path[path.index(after: dot)...]))
            let further = isStrict ? next.names(onPathThroughRelationship: rest, in: entities, isStrict: true) : nil
            return [head] + (further ?? next.names(onPath: rest, in: entities))
        }
        return nil
    }

    /// Returns the parts of a path between its dots.
    static func split(_ path: String) -> [String] {
        path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    }
}
