// BAOAB in C++ behind the protocol of lines: z = (x, p), mass and friction 1, temperature 1.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>
using std::string;
using std::vector;

vector<double> numbers(const string& line) {  // the list of a line
  vector<double> out;
  if (line.find('[') == string::npos) return out;
  const char* at = line.c_str() + line.find('[') + 1;
  for (char* end; *at && *at != ']'; at = *end == ',' ? end + 1 : end) out.push_back(strtod(at, &end));
  return out;
}
double field(const string& line, const string& name) {
  return strtod(line.c_str() + line.find("\"" + name + "\": ") + name.size() + 4, nullptr);
}
void say(const string& before, const vector<double>& list) {
  printf("{%s[", before.c_str());
  for (size_t i = 0; i < list.size(); i++) printf(i ? ", %.17g" : "%.17g", list[i]);
  printf("]}\n"), fflush(stdout);
}
vector<double> answer() { string line; std::getline(std::cin, line); return numbers(line); }
vector<double> gradient(const vector<double>& x) { say("\"ask\": \"gradient\", \"x\": ", x); return answer(); }
vector<double> normal(size_t n) { printf("{\"ask\": \"normal\", \"n\": %zu}\n", n), fflush(stdout); return answer(); }

vector<double> step(vector<double> x, vector<double> p, double h) {
  size_t d = x.size();
  double c = exp(-h), s = sqrt(1 - c * c);
  vector<double> g = gradient(x), xi = normal(d);
  for (size_t i = 0; i < d; i++) {
    x[i] += h / 2 * (p[i] -= h / 2 * g[i]);
    x[i] += h / 2 * (p[i] = c * p[i] + s * xi[i]);
  }
  g = gradient(x);
  for (size_t i = 0; i < d; i++) x.push_back(p[i] - h / 2 * g[i]);
  return x;
}

int main() {
  for (string line; std::getline(std::cin, line) && line.find("\"stop\"") == string::npos;) {
    vector<double> z = numbers(line);
    if (line.find("\"describe\"") != string::npos) {
      puts("{\"protocol\": 1, \"draws\": \"given\", \"order\": 2}"), fflush(stdout);
    } else if (line.find("\"init\"") != string::npos) {
      vector<double> p = normal(z.size());
      z.insert(z.end(), p.begin(), p.end()), say("\"z\": ", z);
    } else {
      size_t d = field(line, "d");
      say("\"z\": ", step({z.begin(), z.begin() + d}, {z.begin() + d, z.end()}, field(line, "h")));
    }
  }
}
