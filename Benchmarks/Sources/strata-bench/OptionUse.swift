import ArgumentParser

/// The options that not every command reads. One that is given and not read would be ignored in silence, so it is refused.
enum OptionUse: String, CaseIterable {
    case stack, store, routing, durability, objects
    case saveEvery = "save-every"
    case input, seed
    case repeats = "repeat"
}

extension BenchmarkOptions {
    private func isGiven(_ option: OptionUse) -> Bool {
        switch option {
        case .stack: stack != nil
        case .store: store != nil
        case .routing: routing != nil
        case .durability: durability != nil
        case .objects: objects != nil
        case .saveEvery: saveEvery != nil
        case .input: input != nil
        case .seed: seed != nil
        case .repeats: repeats != nil
        }
    }

    /// Throws unless all given options are among these.
    func refuse(allBut read: Set<OptionUse>, in command: String) throws {
        for option in OptionUse.allCases where isGiven(option) && !read.contains(option) {
            throw ValidationError("--\(option.rawValue): \(command) does not read this option; leave it out")
        }
    }

    /// Throws when both are given: what is read from a file is not generated.
    func refuse(_ option: OptionUse, withInput why: String) throws {
        if input != nil, isGiven(option) { throw ValidationError("--\(option.rawValue): \(why); leave out this or --input") }
    }

    /// Data that is read has the size that it has, and no seed.
    func refuseGeneratorWithInput() throws {
        try refuse(.objects, withInput: "generated data only has a size to choose")
        try refuse(.seed, withInput: "generated data only has a seed")
    }
}
