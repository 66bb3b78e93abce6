extension Entity {
    /// Returns the names of the properties on a path such as `album.artist.name`, split at its dots.
    ///
    /// A name that contains dots, such as `Sepal.Length`, stays whole: the longest property that the path begins with comes first, and the
    /// rest belongs to the destination. A path of unknown names is split at each dot.
    public func names(onPath path: String, in model: Model) -> [String] {
        guard path.utf8.contains(UInt8(ascii: ".")), column(named: path) == nil, relationship(named: path) == nil else {
            return [path]
        }
        var end = path.endIndex
        while let dot = path[..<end].lastIndex(of: ".") {
            end = dot
            let head = String(path[..<dot])
            // The head of a hierarchy has the properties of all of its entities.
            guard
                let destination = relationship(named: head)?.destination
                    ?? column(named: head).flatMap({ columns[$0].destination })
            else { continue }
            return [head] + model.entities[destination].names(onPath: String(path[path.index(after: dot)...]), in: model)
        }
        return path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    }
}
